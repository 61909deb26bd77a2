from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import HandleBook, wants_full
from penstock.checkpoint.storage import FolderStateStorage
from penstock.common.constants import MIN_LONG_VALUE
from penstock.runtime.stream_task import EpochOutcome
from penstock.runtime.task_host import StateHandle, SubtaskOrder, TaskAck

OUTCOME = EpochOutcome(False, None, 0, 0, MIN_LONG_VALUE, [], {}, {}, {})


def ack(subtask: int, handle: StateHandle | None, epoch: int = 1) -> TaskAck:
    return TaskAck(0, subtask, epoch, handle, OUTCOME, 0, 0)


def handle(name: str, size: int = 10, is_full: bool = False) -> StateHandle:
    return StateHandle(name, 1, size, is_full)


def names_of(book: HandleBook, subtask: int = 0) -> list[str]:
    return [each.name for each in book.orders().get((0, subtask), SubtaskOrder()).handles]


def test_new_book_orders_nothing():
    assert HandleBook().orders() == {}


def test_delta_is_added_to_what_was_there():
    book = HandleBook()
    book.complete([ack(0, handle("base", is_full=True))])
    assert book.complete([ack(0, handle("delta"))]) == []
    assert names_of(book) == ["base", "delta"]


def test_full_snapshot_frees_all_before_it():
    book = HandleBook()
    book.complete([ack(0, handle("base", is_full=True))])
    book.complete([ack(0, handle("delta"))])
    assert book.complete([ack(0, handle("new base", is_full=True))]) == ["base", "delta"]
    assert names_of(book) == ["new base"]


def test_subtask_that_changed_nothing_keeps_its_files():
    book = HandleBook()
    book.complete([ack(0, handle("base", is_full=True)), ack(1, None)])
    assert book.complete([ack(0, None), ack(1, None)]) == []
    assert names_of(book) == ["base"]
    assert (0, 1) not in book.orders()


def test_subtasks_do_not_touch_each_others_files():
    book = HandleBook()
    book.complete([ack(0, handle("a", is_full=True)), ack(1, handle("b", is_full=True))])
    assert book.complete([ack(0, handle("a2", is_full=True)), ack(1, None)]) == ["a"]
    assert names_of(book, 1) == ["b"]


def test_full_snapshot_is_wanted_when_there_are_many_deltas():
    base = handle("base", is_full=True)
    assert not wants_full((base, *[handle("d")] * 19))
    assert wants_full((base, *[handle("d")] * 20))


def test_full_snapshot_is_wanted_when_the_deltas_outgrow_the_base():
    base = handle("base", size=1_000_000, is_full=True)
    assert not wants_full((base, handle("d", size=900_000)))
    assert wants_full((base, handle("d", size=900_000), handle("d", size=200_000)))


def test_small_states_are_not_rewritten_all_the_time():
    assert not wants_full((handle("base", size=10, is_full=True), handle("d", size=50_000)))


@given(st.lists(st.tuples(st.integers(0, 100_000), st.booleans()), max_size=80))
def test_no_file_is_leaked_or_freed_too_early(snapshots):
    """Whatever is written: the files that exist are those the next order names."""
    book, existing = HandleBook(), set()
    for number, (size, has_changed) in enumerate(snapshots):
        order = book.orders().get((0, 0), SubtaskOrder())
        written = None
        if has_changed:
            written = handle(f"file-{number}", size, is_full=order.wants_full or not order.handles)
            existing.add(written.name)
        existing -= set(book.complete([ack(0, written)]))
        assert existing == set(names_of(book))
        assert len(names_of(book)) <= 21


# --- storage ---------------------------------------------------------------------------------------------------------


def test_file_is_read_as_it_was_written(tmp_path):
    storage = FolderStateStorage(str(tmp_path))
    storage.write("a", b"content")
    storage.write("a", b"other")
    assert storage.read("a") == b"other"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_deleting_twice_is_no_error(tmp_path):
    storage = FolderStateStorage(str(tmp_path))
    storage.write("a", b"")
    storage.delete("a")
    storage.delete("a")
    with pytest.raises(FileNotFoundError):
        storage.read("a")
