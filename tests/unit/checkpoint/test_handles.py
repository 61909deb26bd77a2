from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import HandleBook, next_extent
from penstock.common.constants import MIN_LONG_VALUE
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.runtime.protocol import EpochOutcome, TaskAck
from penstock.runtime.saved_state import StateHandle, following_handles
from penstock.runtime.state.table import Extent
from penstock.testing import MemoryFolder

OUTCOME = EpochOutcome(False, None, 0, 0, MIN_LONG_VALUE, [], {}, {}, {})
REGION = frozenset({0})
ALL, SINCE_BASE, CHANGES = Extent.ALL, Extent.SINCE_BASE, Extent.CHANGES


def ack(subtask: int, handle: StateHandle | None, epoch: int = 1) -> TaskAck:
    return TaskAck(0, subtask, epoch, handle, OUTCOME, 0, 0)


KEYED = frozenset({("o", "keyed", "sum"), ("o", "memory", "task")})
NOT_KEYED = frozenset({("o", "operator", "list"), ("o", "memory", "task")})


def handle(name: str, extent: Extent = CHANGES, size: int = 10, states: frozenset = KEYED) -> StateHandle:
    return StateHandle(name, 1, size, extent, states)


def new_book(tracks_changes: bool = True) -> HandleBook:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_sequence(1, 10).map(str)
    return HandleBook(build_job_graph(env.get_stream_graph()), MemoryFolder(), tracks_changes)


def complete(book: HandleBook, *acks: TaskAck) -> None:
    book.acknowledged(acks)
    book.completed(REGION)


def names_of(book: HandleBook, subtask: int = 0) -> list[str]:
    return [each.name for chain in book.orders(REGION)[(0, subtask)].saved for each in chain.handles]


def test_new_book_has_nothing_to_restore_and_wants_whole_snapshots():
    orders = new_book().orders(REGION)
    assert set(orders) == {(0, 0), (0, 1)}
    assert all(order.saved == () and order.extent is ALL for order in orders.values())


def test_delta_is_added_to_what_was_there():
    book = new_book()
    complete(book, ack(0, handle("base", ALL)))
    complete(book, ack(0, handle("delta")))
    assert names_of(book) == ["base", "delta"]


def test_gathered_changes_take_the_place_of_the_deltas():
    book = new_book()
    for name, extent in (("base", ALL), ("delta", CHANGES), ("gathered", SINCE_BASE), ("next", CHANGES)):
        complete(book, ack(0, handle(name, extent)))
    assert names_of(book) == ["base", "gathered", "next"]


def test_whole_snapshot_takes_the_place_of_all_before_it():
    book = new_book()
    for name, extent in (("base", ALL), ("delta", CHANGES), ("new base", ALL)):
        complete(book, ack(0, handle(name, extent)))
    assert names_of(book) == ["new base"]


def test_subtask_that_changed_nothing_keeps_its_files():
    book = new_book()
    complete(book, ack(0, handle("base", ALL)), ack(1, None))
    complete(book, ack(0, None), ack(1, None))
    assert names_of(book) == ["base"] and names_of(book, 1) == []


def test_what_was_written_for_a_failed_checkpoint_counts_with_the_next_one():
    book = new_book()
    complete(book, ack(0, handle("base", ALL)))
    book.acknowledged([ack(0, handle("first delta"))])
    assert names_of(book) == ["base"], "the checkpoint of the first delta failed"
    complete(book, ack(0, handle("second delta")))
    assert names_of(book) == ["base", "first delta", "second delta"]


def test_after_going_back_what_was_written_since_does_not_count():
    book = new_book()
    complete(book, ack(0, handle("base", ALL)))
    book.acknowledged([ack(0, handle("lost delta"))])
    book.reset(REGION)
    complete(book, ack(0, handle("delta")))
    assert names_of(book) == ["base", "delta"]


def test_without_record_of_changes_every_snapshot_is_whole():
    book = new_book(tracks_changes=False)
    complete(book, ack(0, handle("base", ALL)))
    assert book.orders(REGION)[(0, 0)].extent is ALL


def test_many_deltas_are_gathered():
    base = handle("base", ALL, size=10_000_000)
    assert next_extent((base, *[handle("d")] * 19)) is CHANGES
    assert next_extent((base, *[handle("d")] * 20)) is SINCE_BASE


def test_deltas_next_to_many_other_changes_are_gathered_when_there_are_more_of_them():
    base, gathered = handle("base", ALL, size=10_000_000), handle("g", SINCE_BASE, size=1_000_000)
    assert next_extent((base, gathered, *[handle("d")] * 50)) is CHANGES
    assert next_extent((base, gathered, *[handle("d")] * 70)) is SINCE_BASE
    gathered = handle("g", SINCE_BASE, size=9_000_000)
    assert next_extent((base, gathered, *[handle("d")] * 199)) is CHANGES
    assert next_extent((base, gathered, *[handle("d")] * 200)) is SINCE_BASE


def test_file_without_keyed_state_counts_until_the_next_one():
    base, quiet, delta = handle("base", ALL), handle("quiet", states=NOT_KEYED), handle("delta")
    assert following_handles((base,), quiet) == (base, quiet)
    assert following_handles((base, quiet), delta) == (base, delta)
    assert following_handles((handle("empty", ALL, states=NOT_KEYED),), quiet) == (quiet,)


def test_large_deltas_are_gathered():
    base = handle("base", ALL, size=10_000_000)
    assert next_extent((base, handle("d", size=70_000))) is SINCE_BASE
    assert next_extent((base, handle("g", SINCE_BASE, size=100_000), handle("d", size=70_000))) is CHANGES


def test_new_base_is_written_when_the_changes_outgrow_the_old_one():
    base = handle("base", ALL, size=1_000_000)
    assert next_extent((base, handle("g", SINCE_BASE, size=900_000))) is CHANGES
    assert next_extent((base, handle("g", SINCE_BASE, size=900_000), handle("d", size=200_000))) is ALL


def test_small_states_are_not_rewritten_all_the_time():
    assert next_extent((handle("base", ALL), handle("d", size=50_000))) is CHANGES


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=300), st.integers(1, 10_000_000))
def test_writing_costs_a_few_times_the_changes_and_restoring_a_few_times_the_state(changes, state_size):
    """Whatever the sizes: amortized, a byte of change is written a bounded number of times."""
    handles: tuple[StateHandle, ...] = ()
    written, since_base = 0, 0
    for number, size in enumerate(changes):
        extent = next_extent(handles)
        since_base = 0 if extent is ALL else since_base + size
        cost = {ALL: state_size, SINCE_BASE: min(since_base, state_size), CHANGES: size}[extent]
        written += cost if number else 0  # The first base is paid for by the state itself.
        handles = following_handles(handles, StateHandle(str(number), number, cost, extent, KEYED))
        assert len(handles) <= 202
        assert sum(each.size for each in handles) <= 2 * max(state_size, 64 * 1024) + 2 * max(changes)
    gathering = 16 * 1024 * len(changes)
    assert written <= 3 * sum(changes) + sum(changes) * len(changes) // 200 + 3 * state_size + gathering
