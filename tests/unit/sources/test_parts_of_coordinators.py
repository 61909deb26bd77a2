"""The parts that coordinators of sources are made of."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_job import PATIENCE_S

from penstock.common import Configuration
from penstock.graph.descriptions import SocketSourceDescription
from penstock.jobmaster.execution.async_calls import AsyncCalls
from penstock.jobmaster.region.epoch_pace import FIRST_RECORDS, EpochPace
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.jobmaster.sources.source_coordinator import build_source_coordinator
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.jobmaster.sources.spool import Spool
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import read_chunk

# --- how much an epoch reads -----------------------------------------------------------------------------------------


def test_slow_epochs_become_smaller_until_they_fit():
    pace = EpochPace(target_ms=500)
    for _ in range(10):
        pace.epoch_completed(pace.records * 7, pace.records, has_more=True)  # 7 ms for each record
    assert 400 <= pace.records * 7 <= 500


def test_quick_epochs_become_larger_step_by_step():
    pace = EpochPace(target_ms=500)
    pace.epoch_completed(1, pace.records, has_more=True)
    assert pace.records == 4 * FIRST_RECORDS


def test_an_epoch_that_read_all_there_was_says_nothing():
    pace = EpochPace(target_ms=500)
    pace.epoch_completed(10, 3, has_more=False)
    pace.epoch_completed(10, 0, has_more=False)
    assert pace.records == FIRST_RECORDS


@given(
    epochs=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10**6), st.booleans())),
    most=st.none() | st.integers(1, 10**5),
)
def test_at_least_one_record_and_never_more_than_allowed(epochs, most):
    pace = EpochPace(500, most)
    for duration_ms, records, has_more in epochs:
        pace.epoch_completed(duration_ms, records, has_more)
        assert 1 <= pace.records <= (most or pace.records)


# --- calls in a thread -----------------------------------------------------------------------------------------------


def test_calls_are_made_again_until_closed():
    calls, results = AsyncCalls("test"), []
    enough = threading.Event()

    def done(result, error):
        results.append((result, error))
        if len(results) >= 3:
            enough.set()

    calls.add(lambda: "found", done, 0, 1)
    assert enough.wait(PATIENCE_S)
    calls.close()
    assert results[:3] == [("found", None)] * 3
    assert not calls.has_single_calls()


@pytest.mark.parametrize(("call", "failure"), [(lambda: 1 // 0, ZeroDivisionError), (sys.exit, SystemExit)])
def test_failure_of_a_call_is_handed_over_and_the_next_call_is_made(call, failure):
    calls, results, is_done = AsyncCalls("test"), [], threading.Event()
    calls.add(call, lambda result, error: results.append((result, type(error))), 0, None)
    calls.add(lambda: "next", lambda result, error: (results.append((result, error)), is_done.set()), 0, None)
    assert is_done.wait(PATIENCE_S)
    assert results == [(None, failure), ("next", None)]
    calls.close()


def test_result_of_a_call_that_was_under_way_when_closed_is_dropped():
    calls, results = AsyncCalls("test"), []
    has_begun, may_end, has_ended = threading.Event(), threading.Event(), threading.Event()

    def call():
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        has_ended.set()

    calls.add(call, lambda result, error: results.append(result), 0, None)
    assert has_begun.wait(PATIENCE_S)
    assert calls.has_single_calls()
    calls.close()
    may_end.set()
    assert has_ended.wait(PATIENCE_S)
    calls._thread.join(PATIENCE_S)
    assert results == []


# --- the spool -------------------------------------------------------------------------------------------------------


@given(parts=st.lists(st.integers(0, 5), max_size=8), segment=st.integers(1, 4), data=st.data())
def test_what_is_cut_off_was_never_there(tmp_path_factory, parts, segment, data):
    spool = Spool(tmp_path_factory.mktemp("spool"), segment)
    records = []
    for part in parts:
        added = [bytes([len(records) + each]) for each in range(part)]
        spool.append(added)
        records += added
    number = data.draw(st.integers(0, len(records)))
    spool.cut_off(number)
    spool.append([b"new", b"newer"])
    assert spool.read(0, 100) == [*records[:number], b"new", b"newer"]
    assert spool.end == number + 2
    spool.close()


def elements_of(chunks):
    events = [event for chunk in chunks for event in read_chunk(chunk)]
    return [value for event in events if isinstance(event, Batch) for value in event.values]


def element_spool(tmp_path, max_records=100, on_change=lambda: None):
    return ElementSpool(tmp_path, max_records, 10**6, on_change)


def test_small_elements_share_chunks(tmp_path):
    spool = element_spool(tmp_path, max_records=10**6)
    for number in range(5000):
        spool.add(number, None)
    chunks = spool.take(None)
    assert elements_of(chunks) == list(range(5000))
    assert len(chunks) < 30


def test_elements_can_be_taken_again_until_they_are_forgotten(tmp_path):
    spool = element_spool(tmp_path)
    for number in range(3):
        spool.add(number, None)
    assert elements_of(spool.take(None)) == [0, 1, 2]
    behind = spool.number
    spool.add(3, None)
    spool.go_back(0)
    assert elements_of(spool.take(None)) == [0, 1, 2, 3]
    spool.forget_before(behind)
    spool.go_back(behind)
    assert elements_of(spool.take(None)) == [3]


def test_job_is_woken_once_for_what_it_has_not_looked_at(tmp_path):
    woken = []
    spool = element_spool(tmp_path, on_change=lambda: woken.append(1))
    for number in range(10):
        spool.add(number, None)
    assert (len(woken), spool.has_waiting) == (1, True)
    spool.take(None)
    assert not spool.has_waiting
    spool.add(10, None)
    assert len(woken) == 2


def test_whoever_waits_for_space_is_let_go_when_the_spool_is_closed(tmp_path):
    spool = element_spool(tmp_path, max_records=1)
    spool.add(0, None)
    waiting = threading.Thread(target=spool.wait_for_space)
    waiting.start()
    spool.close()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()


@pytest.mark.parametrize("can_restart", [True, False])
def test_socket_records_that_nobody_asks_for_again_leave_the_disk(tmp_path, monkeypatch, can_restart):
    monkeypatch.setattr("penstock.jobmaster.sources.spool.SEGMENT_BYTES", 1000)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        setup = SourceSetup(
            0, "socket", "socket", 1, 128, tmp_path / "spool", "", lambda: None, can_restart=can_restart,
            config=Configuration(),
        )  # fmt: skip
        source = build_source_coordinator(SocketSourceDescription("127.0.0.1", server.getsockname()[1]), setup)
        source.start()
        [subtask] = source._subtasks
        for _ in range(5):
            subtask.spool.add_all(["x" * 100] * 1000)
            source.plan(1, is_checkpoint=False)
        source.plan(1, is_checkpoint=False)
        segments = len(list((tmp_path / "spool" / "0").iterdir()))
        assert segments >= 5 if can_restart else segments == 1
        source.stop()


# --- how much waits --------------------------------------------------------------------------------------------------


def test_segments_are_bounded_by_their_bytes(tmp_path):
    spool = Spool(tmp_path, segment_bytes=1000)
    for _ in range(100):
        spool.append([b"x" * 300])
    spool.forget_before(100)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2000
    assert spool.read(99, 10) == [b"x" * 300]
    spool.close()


def test_segment_that_cannot_be_removed_is_only_in_the_way(tmp_path, monkeypatch):
    spool = Spool(tmp_path, segment_records=1)
    spool.append([b"one"]), spool.append([b"two"]), spool.append([b"three"])

    def refuse(path):
        raise PermissionError("not yours")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    spool.forget_before(2)
    assert spool.read(2, 10) == [b"three"]
    spool.close()


@given(
    limits=st.lists(st.integers(1, 3000), min_size=1, max_size=10),
    added=st.lists(st.integers(1, 500), min_size=1, max_size=10),
)
def test_about_as_much_is_taken_as_was_asked_for(tmp_path_factory, limits, added):
    """Chunks are a part of the limit under which they were written."""
    spool = ElementSpool(tmp_path_factory.mktemp("spool"), 3000, 10**6, lambda: None)
    expected, taken, largest = 0, 0, 0
    for at, count in enumerate(added):
        limit = limits[at % len(limits)]
        spool.limit(limit)
        largest = max(largest, limit // 4, 1)
        spool.add_all(list(range(expected, expected + count)))
        expected += count
        before = taken
        values = elements_of(spool.take(limit))
        assert values == list(range(before, before + len(values)))
        assert spool.records_taken == len(values) <= limit + largest
        taken += len(values)
    assert elements_of(spool.take(None)) == list(range(taken, expected))


def test_who_had_to_wait_for_space_shows_that_there_is_more(tmp_path):
    spool = element_spool(tmp_path, max_records=2)
    spool.add_all([1, 2])
    waiting = threading.Thread(target=spool.wait_for_space)
    waiting.start()
    deadline = time.monotonic() + PATIENCE_S
    while not spool._has_to_wait:
        assert time.monotonic() < deadline
    spool.take(None)
    waiting.join(PATIENCE_S)
    assert spool.was_full
    spool.take(None)
    assert not spool.was_full


def test_overhead_of_an_epoch_is_no_reason_to_read_less():
    """Each epoch takes a second whatever it reads: reading less would only make the job slower."""
    pace = EpochPace(target_ms=500)
    for _ in range(20):
        pace.epoch_completed(1000 + pace.records // 1000, pace.records, has_more=True)
    assert pace.records > 1000


def test_overhead_does_not_hide_slow_records():
    pace = EpochPace(target_ms=500)
    for _ in range(20):
        pace.epoch_completed(300 + pace.records * 10, pace.records, has_more=True)
    assert 5 <= pace.records <= 60


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("is_exact", [False, True])
def test_position_of_a_socket_of_an_earlier_version_is_understood(tmp_path, has_ended, is_exact):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        setup = SourceSetup(0, "socket", "socket", 1, 128, tmp_path / "spool", "", lambda: None)
        source = build_source_coordinator(SocketSourceDescription("127.0.0.1", server.getsockname()[1]), setup)
        source.restore((700, has_ended), is_exact)
        source.start()
        assert source.is_exhausted is (has_ended and is_exact)
        told = {subtask: assignment.is_last for subtask, assignment in source.plan(1, True).items()}
        assert told == ({0: True} if has_ended and not is_exact else {}), "a changed job is told the end again"
        assert source.is_exhausted is has_ended
        source.stop()
