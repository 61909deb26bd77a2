"""The inbox of a worker: what is put comes out, from memory or from disk."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.exchange import EpochAbandonedError, Inbox
from penstock.runtime.rows import Row, SpilledRow

rows = st.builds(
    Row,
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 1),
    st.integers(0, 3),
    st.integers(0, 9),
    st.binary(max_size=40),
)


def content(row):
    return row.vertex, row.subtask, row.edge, row.channel, row.seq, row.chunk


@given(st.lists(rows), st.integers(0, 200))
def test_everything_comes_out_in_order_whatever_fits_into_memory(given_rows, spill_bytes):
    inbox = Inbox(spill_bytes)
    for row in given_rows:
        inbox.put(1, row)
    for vertex in range(3):
        for subtask in range(3):
            expected = [row for row in given_rows if (row.vertex, row.subtask) == (vertex, subtask)]
            assert [content(row) for row in inbox.take(1, vertex, subtask)] == expected
            assert inbox.take(1, vertex, subtask) == []
    inbox.end_epoch(1)
    assert inbox._bytes == 0 and inbox._spilled is None


def test_chunks_beyond_the_bound_wait_on_disk_and_the_file_goes_with_the_epoch():
    inbox = Inbox(spill_bytes=10)
    for seq in range(4):
        inbox.put(1, Row(0, 0, 0, 0, seq, b"12345"))
    taken = inbox.take(1, 0, 0)
    assert [isinstance(row, SpilledRow) for row in taken] == [False, False, True, True]
    file = inbox._spilled
    inbox.end_epoch(1)
    assert file is not None and file.closed
    with pytest.raises(OSError):
        _ = taken[-1].chunk


def test_file_stays_while_the_next_epoch_has_something_in_it():
    inbox = Inbox(spill_bytes=0)
    inbox.put(1, Row(0, 0, 0, 0, 0, b"now"))
    inbox.put(2, Row(0, 0, 0, 0, 0, b"ahead"))
    inbox.end_epoch(1)
    assert [row.chunk for row in inbox.take(2, 0, 0)] == [b"ahead"]


def test_rows_and_marks_of_an_epoch_that_is_over_are_dropped():
    inbox = Inbox()
    inbox.end_epoch(5)
    inbox.put(4, Row(0, 0, 0, 0, 0, b"late"))
    inbox.mark(5, (1, 0))
    assert inbox.take(4, 0, 0) == [] and inbox._marks == {}


def test_stage_begins_when_the_last_mark_has_come():
    inbox = Inbox()
    begun = threading.Event()
    inbox.mark(1, (1, 0))
    waiting = threading.Thread(target=lambda: (inbox.wait_for(1, frozenset({(1, 0), (2, 0)})), begun.set()))
    waiting.start()
    inbox.mark(2, (2, 0))  # Of another epoch.
    assert not begun.wait(0.05)
    inbox.mark(1, (2, 0))
    assert begun.wait(30)
    waiting.join()


def test_who_waits_is_woken_up_when_the_epoch_is_given_up():
    inbox = Inbox()
    raised = threading.Event()

    def wait():
        with pytest.raises(EpochAbandonedError):
            inbox.wait_for(1, frozenset({(1, 0)}))
        raised.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    inbox.abandon()
    assert raised.wait(30)
    waiting.join()
    inbox.begin()
    inbox.check()


def test_new_run_begins_with_nothing_of_what_was_given_up():
    """Else a job that fails again and again would fill the disk."""
    inbox = Inbox(spill_bytes=5)
    for seq in range(3):
        inbox.put(1, Row(0, 0, 0, 0, seq, b"12345"))
    inbox.mark(1, (1, 0))
    file = inbox._spilled
    inbox.abandon()
    inbox.begin()
    assert (inbox._bytes, inbox._rows, inbox._marks, inbox._spilled) == (0, {}, {}, None)
    assert file is not None and file.closed
    inbox.put(2, Row(0, 0, 0, 0, 0, b"12345"))
    assert [row.chunk for row in inbox.take(2, 0, 0)] == [b"12345"]
