"""Plain keyed state on disk against a dictionary: batches, single accesses, snapshots and restores."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common.exceptions import LocalStateError
from penstock.runtime.nan_keys import NAN
from penstock.runtime.state import cached_keys, key_store
from penstock.runtime.state.backends import DiskBackend
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.slot_memory import parse_memory_size
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent

MODULUS = sys.hash_info.modulus

# Many of them have the hash of another one, and some are equal to others of another type.
KEYS = [
    0,
    MODULUS,
    -MODULUS,
    -1,
    -2,
    1,
    True,
    1.0,
    2.5,
    hash(2.5),
    1 << 70,
    "a",
    "b",
    ("a", 1),
    None,
    NAN,
    b"a",
    7,
    8,
    9,
]
VALUES = [1, -(1 << 63), 1 << 63, 0.5, -0.0, float("inf"), "text", ("a", 1.5, None), [1], {"k": [2]}, b"x" * 300, True]

DIFFERENT_KEYS = [0, 1, True, 2.5, "a", "b", ("a", 1), None, b"a", 7, 8, 9]
"""No two of them are different and have the same hash."""


def steps_with(keys):
    batches = st.lists(st.tuples(st.sampled_from(keys), st.sampled_from([None, None, *VALUES])), max_size=12)
    step = st.one_of(
        st.tuples(st.just("batch"), batches),
        st.tuples(st.just("two_batches"), batches),
        st.tuples(st.just("single"), batches),
        st.tuples(st.just("numbers"), st.lists(st.integers(0, 300), max_size=40)),
        st.tuples(st.just("snapshot"), st.sampled_from(Extent)),
        st.tuples(st.just("restore"), st.none()),
    )
    return st.lists(step, max_size=25)


class Subtask:
    """A table, what it must hold, and the snapshots that it can be restored from."""

    def __init__(self, cache_entries, tracks_changes, passes=False):
        self._make = DiskBackend((), cache_entries, tracks_changes).tables("run", "s0", "op")
        self._tracks = tracks_changes
        self._passes = passes
        self.table = self._new_table()
        self.model = {}
        self.chain = [(Extent.ALL, [])]
        self.saved = {}

    def _new_table(self):
        table = self._make("t")
        if self._passes:  # As if it had turned out that keys come again late, and that most of them are written.
            table._cached.notes_writes, table._cached._left_to_pass = False, 300
        return table

    def batch(self, accesses):
        """As generated loops do: on a dictionary, with notes of what changed."""
        self._access(accesses)
        self.table.close_namespace(VOID_NAMESPACE)

    def two_batches(self, accesses):
        """As sessions do: more keys are asked for before the first ones are done with."""
        half = len(accesses) // 2
        self._access(accesses[:half])
        self._access(accesses[half:])
        self.table.close_namespace(VOID_NAMESPACE)

    def _access(self, accesses):
        entries = self.table.open_namespace(VOID_NAMESPACE, [key for key, _ in accesses])
        changes = self.table.open_changes(VOID_NAMESPACE)
        for key, value in accesses:
            assert same(entries.get(key), self.model.get(key))
            if value is not None:
                if self.table.wants_notes(VOID_NAMESPACE) and key not in changes:
                    changes[key] = key in entries
                entries[key] = self.model[key] = value
            elif entries.pop(key, None) is not None:
                del self.model[key]
                if changes.get(key, True):
                    changes[key] = True
                else:
                    del changes[key]

    def single(self, accesses):
        for key, value in accesses:
            assert same(self.table.get(VOID_NAMESPACE, key), self.model.get(key))
            if value is not None:
                self.table.put(VOID_NAMESPACE, key, value)
                self.model[key] = value
            else:
                assert self.table.remove(VOID_NAMESPACE, key) == (self.model.pop(key, None) is not None)

    def snapshot(self, extent):
        extent = extent if self._tracks else Extent.ALL
        blocks = [encode_state(block) for block in self.table.blocks(extent)]
        kept = {Extent.ALL: [], Extent.SINCE_BASE: self.chain[:1], Extent.CHANGES: self.chain}[extent]
        self.chain = [*kept, (extent, blocks)]
        self.saved = dict(self.model)
        self.table.snapshot_written(extent)

    def restore(self):
        self.table.dispose()
        self.table, self.model = self._new_table(), dict(self.saved)
        for extent, blocks in self.chain:
            for block in blocks:
                self.table.load(decode_state(block), extent)

    def check(self):
        held = {key: value for _, key, value in self.table.all_entries()}
        assert len(held) == len(self.model) == len(self.table)
        assert all(same(held[key], value) for key, value in self.model.items())
        assert self.table.has_namespace(VOID_NAMESPACE) == bool(self.model)


def same(one, other):
    """Equal, and of the same type: 1 and True and 1.0 are different values."""
    return type(one) is type(other) and repr(one) == repr(other)


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("tracks_changes", [True, False])
@settings(max_examples=200)
@example(1, [("batch", [(0, 1), (-MODULUS, 1)]), ("batch", [(MODULUS, 1)]), ("single", [(MODULUS, 1)])])
@example(4, [("batch", [(0, 1), (1, 1)])] * 2 + [("batch", [(0, None), (1, 2), (0, 3), (7, 1)])] * 2)
@given(st.sampled_from([1, 4, 16, 1000]), st.one_of(steps_with(KEYS), steps_with(DIFFERENT_KEYS)))
def test_state_on_disk_is_a_dictionary(tracks_changes, passes, cache_entries, all_steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_keys, "_LARGE_BATCH", 1)
        patch.setattr(key_store, "_WRITTEN_AT_ONCE", 5)
        subtask = Subtask(cache_entries, tracks_changes, passes)
        try:
            run_steps(subtask, all_steps)
        finally:
            subtask.table.dispose()


def run_steps(subtask, all_steps):
    for kind, argument in all_steps:
        match kind:
            case "batch" | "two_batches" | "single":
                getattr(subtask, kind)(argument)
            case "numbers":
                subtask.batch([(number, number * 7) for number in argument])
            case "snapshot":
                subtask.snapshot(argument)
            case _:
                subtask.restore()
    subtask.check()
    subtask.snapshot(Extent.CHANGES)
    subtask.restore()
    subtask.check()


def table_of(tmp_path, cache_entries=100):
    return DiskBackend((str(tmp_path),), cache_entries).tables("run", "s0", "op")("t")


def write(table, keys, value):
    entries, changes = table.open_namespace(VOID_NAMESPACE, keys), table.open_changes(VOID_NAMESPACE)
    for key in keys:
        changes.setdefault(key, key in entries)
        entries[key] = value(key)
    table.close_namespace(VOID_NAMESPACE)


def count(table, keys):
    entries = table.open_namespace(VOID_NAMESPACE, keys)
    for key in keys:
        entries[key] = entries.get(key, 0) + 1
    table.close_namespace(VOID_NAMESPACE)


@pytest.mark.parametrize("key", [int, str])
def test_batches_pass_for_as_long_as_their_keys_do_not_come_again_in_time(tmp_path, key):
    table = DiskBackend((str(tmp_path),), 4_000, tracks_changes=False).tables("run", "s0", "op")("t")
    for _ in range(3):
        for start in range(0, 50_000, 1_000):
            count(table, [key(number) for number in range(start, start + 1_000)])
    assert not table._cached._recent and not table._cached._older
    for _ in range(500):
        count(table, [key(number) for number in range(1_000)])
    assert len(table._cached._recent) == 1_000
    assert {held for _, _, held in table.all_entries()} == {3, 503} and len(table) == 50_000
    table.dispose()


@pytest.mark.parametrize("value", [lambda key: key, lambda key: (key, "text"), lambda key: [key]])
def test_a_small_change_of_a_large_state_is_a_small_snapshot(tmp_path, value):
    table = table_of(tmp_path)
    for start in range(0, 50_000, 5_000):
        write(table, range(start, start + 5_000), value)
    base = sum(len(encode_state(block)) for block in table.blocks(Extent.ALL))
    table.snapshot_written(Extent.ALL)
    for epoch in range(3):
        touched = [100 * epoch + number for number in range(20)]
        write(table, touched, lambda key: value(key + 1))
        table.remove(VOID_NAMESPACE, 40_000 + epoch)
        blocks = list(table.blocks(Extent.CHANGES))
        found = {key: held for block in blocks for key, held in block[VOID_NAMESPACE].items()}
        assert found == {**{key: value(key + 1) for key in touched}, 40_000 + epoch: REMOVED}
        assert 500 * sum(len(encode_state(block)) for block in blocks) < base
        table.snapshot_written(Extent.CHANGES)
    assert sum(len(block[VOID_NAMESPACE]) for block in table.blocks(Extent.SINCE_BASE)) == 3 * 21
    table.dispose()


def test_values_that_are_written_again_and_again_take_no_more_room(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.runtime.state.key_store._MIN_OBSOLETE_BYTES", 1 << 16)
    table = table_of(tmp_path)
    for turn in range(60):
        write(table, range(500), lambda key, turn=turn: f"{turn} " + 200 * "x")
    sizes = [path.stat().st_blocks * 512 for path in tmp_path.rglob("records-*")]
    assert len(sizes) == 1 and sizes[0] < 1 << 20
    assert all(table.get(VOID_NAMESPACE, key).startswith("59 ") for key in range(500))
    table.dispose()


def test_a_loop_over_all_entries_sees_each_once_while_the_file_grows(tmp_path):
    table = table_of(tmp_path)
    write(table, range(3_000), str)
    seen = []
    for number, (_, key, value) in enumerate(table.all_entries()):
        if key < 3_000:
            seen.append((key, value))
        if number % 50 == 0 and number < 1_000:
            write(table, range(10_000 + 50 * number, 10_000 + 50 * number + 500), str)
    assert sorted(seen) == [(key, str(key)) for key in range(3_000)]
    table.dispose()


def test_a_full_disk_is_an_error_that_says_where(tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(28, "No space left on device")

    table = table_of(tmp_path)
    monkeypatch.setattr("os.posix_fallocate", no_room)
    with pytest.raises(
        LocalStateError, match=r"cannot be written to .*No space left.*state\.backend\.rocksdb\.localdir"
    ):
        write(table, range(1_000), str)
    table.dispose()


@pytest.mark.parametrize(
    "value", [lambda key: key, lambda key: [b"x" * 1000] * 10, lambda key: (str(key), bytes(5000))]
)
def test_objects_in_memory_take_what_the_slot_has_for_them(tmp_path, value):
    backend = DiskBackend((str(tmp_path),), memory_bytes=2_000_000)
    tables = [backend.tables(str(tmp_path), f"v{vertex}-s0", "op")("t") for vertex in range(2)]
    of_another_slot = backend.tables(str(tmp_path), "v0-s1", "op")("t")
    for table in [*tables, of_another_slot]:
        for start in range(0, 10_000, 10):
            write(table, range(start, start + 10), value)
    shares = [table._cached._generation_size for table in [*tables, of_another_slot]]
    assert shares[0] == shares[1] and 0.45 < shares[0] / shares[2] < 0.55
    size = 200 + sys.getsizeof(value(0)) + (10_000 if isinstance(value(0), list) else 0)
    for table in [*tables, of_another_slot]:
        held = len(table._cached._recent) + len(table._cached._older)
        assert held * size < (2_200_000 if table is of_another_slot else 1_100_000)
    assert [table.get(VOID_NAMESPACE, 5) for table in tables] == [value(5), value(5)]
    for table in [*tables, of_another_slot]:
        table.dispose()


@pytest.mark.parametrize(
    ("text", "size"),
    [("1gb", 1 << 30), ("512 MB", 512 << 20), ("7", 7), ("3 kibibytes", 3072), ("gb", None), ("-1", None)],
)
def test_sizes_of_memory_as_flink_writes_them(text, size):
    assert parse_memory_size(text) == size
