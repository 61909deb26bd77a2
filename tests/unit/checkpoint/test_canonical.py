"""Savepoints of the canonical format: what goes in comes out, at any parallelism, wherever the folder is."""

from __future__ import annotations

import json
import pickle
import random
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint import keyed_entries, parquet_parts
from penstock.checkpoint.canonical import CanonicalState, write_canonical
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.metadata import OperatorEntry, VertexEntry
from penstock.checkpoint.parquet_parts import StateName
from penstock.common.exceptions import CorruptStateError, StateMismatchError
from penstock.common.types import Row
from penstock.datastream.window import GlobalWindow, TimeWindow
from penstock.runtime.key_groups import KeyOwners, key_group_range
from penstock.runtime.saved_state import FileChain, StateHandle
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import EncodedMapEntries, PartialMaps, WholeMap, pack
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent, StateTable
from penstock.runtime.timers import TIMER_TABLE_PREFIX

MAX_PARALLELISM = 16
OPERATOR = "a" * 32
OTHER = "b" * 32
VERTEX = VertexEntry(
    (OperatorEntry(OPERATOR, "Totals", "totals"), OperatorEntry(OTHER, "Sink")), 1, MAX_PARALLELISM, ()
)
ALL_GROUPS = range(MAX_PARALLELISM)
BOTH = frozenset(VERTEX.names)


@dataclass(frozen=True)
class User:
    name: str
    team: int


@dataclass
class Gone:
    """A class that a later version of the program does not have."""

    number: int


Blocks = list[tuple[str, str, str, Any]]
"""(operator, kind, name, value)."""


def state_file(folder: LocalFolder, name: str, epoch: int, extent: Extent, blocks: Blocks) -> StateHandle:
    with folder.create(name) as out:
        writer = StateFileWriter(out)
        for operator, kind, state, value in blocks:
            writer.add(operator, kind, state, encode_state(value))
        writer.finish()
    return StateHandle(name, epoch, writer.size, extent, writer.states(), has_fixed_keys=True)


def chain_of(tmp_path: Path, *files: Blocks, subtask: int = 0) -> FileChain:
    """A base and deltas."""
    folder = LocalFolder(str(tmp_path / "native"))
    folder.make()
    extents = [Extent.ALL, *[Extent.CHANGES] * len(files)][: len(files)]
    handles = [
        state_file(folder, f"s{subtask}-{number}", number + 1, extent, blocks)
        for number, (blocks, extent) in enumerate(zip(files, extents, strict=True))
    ]
    return FileChain(folder, tuple(handles), subtask, VERTEX.names)


def savepoint_of(tmp_path: Path, chain: FileChain, **options: Any) -> CanonicalState:
    target = LocalFolder(str(tmp_path / "savepoint"))
    target.make()
    return CanonicalState(
        target, write_canonical(chain, VERTEX, chain.subtask, target, **options), chain.subtask, VERTEX.names
    )


def keyed(contents: Any, name: str = "totals", operator: str = OPERATOR) -> tuple[str, str, str, Any]:
    return operator, "keyed", name, contents


def entries_of(state: CanonicalState, key_groups: range = ALL_GROUPS, operators: frozenset[str] = BOTH) -> list[Any]:
    return [
        (block.operator_id, block.name, namespace, key, value)
        for block in state.blocks(operators, key_groups)
        if block.kind == "keyed"
        for namespace, keys in block.value.items()
        for key, value in keys.items()
    ]


# --- keyed state ----------------------------------------------------------------------------------------------------


def test_newest_value_of_a_key_counts(tmp_path):
    chain = chain_of(
        tmp_path,
        [keyed({VOID_NAMESPACE: {"a": 1, "b": 1, "c": 1}})],
        [keyed({VOID_NAMESPACE: {"a": 2, "b": REMOVED}})],
        [keyed({VOID_NAMESPACE: {"a": 3, "d": 3}})],
    )
    found = {key: value for *_, key, value in entries_of(savepoint_of(tmp_path, chain))}
    assert found == {"a": 3, "c": 1, "d": 3}


def test_key_that_was_removed_and_came_back_is_there(tmp_path):
    chain = chain_of(
        tmp_path,
        [keyed({VOID_NAMESPACE: {"a": 1}})],
        [keyed({VOID_NAMESPACE: {"a": REMOVED}})],
        [keyed({VOID_NAMESPACE: {"a": 2}})],
    )
    assert [value for *_, value in entries_of(savepoint_of(tmp_path, chain))] == [2]


def test_state_of_which_nothing_is_left_has_no_file(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}})], [keyed({VOID_NAMESPACE: {"a": REMOVED}})])
    assert savepoint_of(tmp_path, chain).handles == ()


def test_timers_are_kept_like_any_keyed_state(tmp_path):
    table, window = f"{TIMER_TABLE_PREFIX}window-timers/event-time", TimeWindow(0, 5)
    chain = chain_of(tmp_path, [keyed({(4, window): {"a": True, "b": True}}, table)])
    assert entries_of(savepoint_of(tmp_path, chain)) == [
        (OPERATOR, table, (4, window), "a", True),
        (OPERATOR, table, (4, window), "b", True),
    ]


def test_only_the_operators_that_are_asked_for_are_read(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}}), keyed({VOID_NAMESPACE: {"a": 2}}, operator=OTHER)])
    state = savepoint_of(tmp_path, chain)
    assert entries_of(state, operators=frozenset({OTHER})) == [(OTHER, "totals", VOID_NAMESPACE, "a", 2)]


def test_left_out_state_is_not_written(tmp_path):
    chain = chain_of(
        tmp_path,
        [keyed({VOID_NAMESPACE: {"a": 1}}), keyed({VOID_NAMESPACE: {"a": 2}}, "other"), (
            OPERATOR, "operator", "x, y", {"x": ("split", [1]), "y": ("split", [2])})],
    )  # fmt: skip
    left_out = frozenset({StateName(OPERATOR, "keyed", "totals"), StateName(OPERATOR, "operator", "x")})
    state = savepoint_of(tmp_path, chain, left_out=left_out)
    assert {name for handle in state.handles for _, _, name in handle.states} == {"other", "y"}


def test_what_a_reader_does_not_want_is_not_unpickled(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1, "b": 2, "c": 3, "d": 4}})])
    state = savepoint_of(tmp_path, chain)
    for groups in (range(8), range(8, 16)):
        (block,) = state.blocks(BOTH, groups)
        owners = KeyOwners(MAX_PARALLELISM, 2)
        assert {owners[key] for key in block.value[VOID_NAMESPACE]} == {groups.start // 8}


def test_large_state_is_written_and_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_parts, "ROWS_OF_GROUP", 100)
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {n: n * n for n in range(1000)}})])
    state = savepoint_of(tmp_path, chain)
    sizes = [len(block.value[VOID_NAMESPACE]) for block in state.blocks(BOTH, ALL_GROUPS)]
    assert sizes == [100] * 10


def test_large_values_make_small_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_parts, "BYTES_OF_GROUP", 1000)
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {n: bytes(400) for n in range(6)}})])
    assert len(list(savepoint_of(tmp_path, chain).blocks(BOTH, ALL_GROUPS))) > 2


# --- maps that are saved entry by entry -------------------------------------------------------------------------------


def encoded_maps(maps: dict[Any, dict[Any, Any]]) -> EncodedMapEntries:
    """A block of a base as it is written by tables that are kept on disk."""
    entries = [(key, name, value) for key, held in maps.items() for name, value in held.items()]
    packed = [pack(encode_state((key, name)), encode_state(value)) for key, name, value in entries]
    return EncodedMapEntries({VOID_NAMESPACE: b"".join(packed)})


def restored(state: Any) -> dict[Any, Any]:
    table = HeapStateTable("maps")
    for block in state.blocks(BOTH, ALL_GROUPS):
        table.load(block.value)
    return table.entries


def test_parts_of_maps_add_up(tmp_path):
    chain = chain_of(
        tmp_path,
        [keyed(encoded_maps({"a": {1: 1, 2: 1}, "b": {1: 1}, "c": {1: 1}, "d": {1: 1}}))],
        [keyed(PartialMaps({VOID_NAMESPACE: {"a": {2: 2, 3: 2}, "b": REMOVED, "c": {1: REMOVED}}}))],
        [keyed(PartialMaps({VOID_NAMESPACE: {"a": {1: REMOVED}, "b": {2: 3}, "d": WholeMap({9: 9})}}))],
    )
    assert restored(savepoint_of(tmp_path, chain)) == {VOID_NAMESPACE: {"a": {2: 2, 3: 2}, "b": {2: 3}, "d": {9: 9}}}


def test_map_in_several_blocks_is_one_row(tmp_path):
    first, second = encoded_maps({"a": {1: 1}, "b": {1: 1}}), encoded_maps({"b": {2: 2}, "c": {3: 3}})
    chain = chain_of(tmp_path, [keyed(first), keyed(second)])
    assert [(key, value) for *_, key, value in entries_of(savepoint_of(tmp_path, chain))] == [
        ("a", {1: 1}),
        ("b", {1: 1, 2: 2}),
        ("c", {3: 3}),
    ]


def test_large_map_stays_in_parts_that_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(keyed_entries, "ENTRIES_OF_PART", 10)
    monkeypatch.setattr(parquet_parts, "ROWS_OF_GROUP", 2)
    blocks = [keyed(encoded_maps({"a": {n: n for n in range(at, at + 10)}})) for at in range(0, 100, 10)]
    state = savepoint_of(tmp_path, chain_of(tmp_path, blocks))
    assert len(list(state.blocks(BOTH, ALL_GROUPS))) == 5
    assert restored(state) == {VOID_NAMESPACE: {"a": {n: n for n in range(100)}}}


map_parts = st.dictionaries(st.integers(0, 4), st.one_of(st.just(REMOVED), st.integers()), min_size=1, max_size=4)
whole_maps = st.dictionaries(st.integers(0, 4), st.integers(), min_size=1, max_size=4)
changed_maps = st.one_of(st.just(REMOVED), map_parts, whole_maps.map(WholeMap))
letters = st.sampled_from("abcd")


@settings(max_examples=100)
@given(
    base=st.lists(st.dictionaries(letters, whole_maps, max_size=4), max_size=3),
    deltas=st.lists(st.lists(st.dictionaries(letters, changed_maps, max_size=4), max_size=2), max_size=3),
    longest=st.sampled_from([1, 3, 100]),
)
def test_maps_in_parts_are_restored_as_from_the_files_themselves(tmp_path_factory, base, deltas, longest):
    tmp_path = tmp_path_factory.mktemp("maps")
    changes = [[keyed(PartialMaps({VOID_NAMESPACE: part})) for part in delta] for delta in deltas]
    chain = chain_of(tmp_path, [keyed(encoded_maps(maps)) for maps in base if maps], *changes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keyed_entries, "ENTRIES_OF_PART", longest)
        patched.setattr(parquet_parts, "ROWS_OF_GROUP", 2)
        state = savepoint_of(tmp_path, chain)
    assert restored(state) == restored(chain)
    shutil.rmtree(tmp_path)


# --- state of both backends -------------------------------------------------------------------------------------------

steps = st.lists(st.tuples(letters, st.integers(0, 4), st.one_of(st.none(), st.integers())), max_size=12)
"""Key, key in the map, and the value to put there; None removes."""


def change(table: StateTable, key: str, map_key: int, value: int | None) -> None:
    if not table.has_maps:
        table.remove(VOID_NAMESPACE, key) if value is None else table.put(VOID_NAMESPACE, key, (map_key, value))
        return
    held = table.get(VOID_NAMESPACE, key, {})
    if value is not None:
        held[map_key] = value
    else:
        held.pop(map_key, None)
    if held:
        table.put(VOID_NAMESPACE, key, held)
    else:
        table.remove(VOID_NAMESPACE, key)


@settings(max_examples=60)
@given(epochs=st.lists(steps, min_size=1, max_size=4), has_maps=st.booleans(), is_on_disk=st.booleans())
def test_tables_come_back_whatever_holds_them(tmp_path_factory, epochs, has_maps, is_on_disk):
    tmp_path = tmp_path_factory.mktemp("backends")
    disk = DiskBackend((str(tmp_path),), cache_entries=2)
    table = (disk if is_on_disk else HeapBackend()).tables("run", "s0", OPERATOR)("state")
    if has_maps:
        table.hold_maps()
    files = []
    for number, changes in enumerate(epochs):
        for each in changes:
            change(table, *each)
        extent = Extent.CHANGES if number else Extent.ALL
        files.append([keyed(pickle.loads(pickle.dumps(block))) for block in table.blocks(extent)])
        table.snapshot_written(extent)
    state = savepoint_of(tmp_path, chain_of(tmp_path, *files))
    expected = {key: dict(value) if has_maps else value for _, key, value in table.all_entries()}
    for backend in (HeapBackend(), disk):
        again = backend.tables("again", "s0", OPERATOR)("state")
        for block in state.blocks(BOTH, ALL_GROUPS):
            again.load(block.value)
        assert {key: dict(value) if has_maps else value for _, key, value in again.all_entries()} == expected
        again.dispose()
    table.dispose()
    shutil.rmtree(tmp_path)


# --- operator state and memory --------------------------------------------------------------------------------------


def test_operator_state_comes_back_as_one_block_of_the_newest_file(tmp_path):
    saved = {"a": ("split", [1, (2, "x")]), "b": ("union", []), "c": ("broadcast", {("k", 1): User("ada", 1)})}
    chain = chain_of(
        tmp_path, [(OPERATOR, "operator", "a", {"a": ("split", [9])})], [(OPERATOR, "operator", "a, b, c", saved)]
    )
    (block,) = savepoint_of(tmp_path, chain).blocks(BOTH, range(0))
    assert (block.operator_id, block.kind, block.subtask, block.value) == (OPERATOR, "operator", 0, saved)


def test_memory_of_the_task_goes_along(tmp_path):
    chain = chain_of(tmp_path, [(OPERATOR, "memory", "task", {"watermark": 1})], [(OPERATOR, "memory", "task", [2, 3])])
    (block,) = savepoint_of(tmp_path, chain).blocks(BOTH, ALL_GROUPS)
    assert (block.kind, block.name, block.value) == ("memory", "task", [2, 3])


def test_subtask_without_files_has_nothing(tmp_path):
    assert savepoint_of(tmp_path, chain_of(tmp_path)).handles == ()


# --- files ----------------------------------------------------------------------------------------------------------


def test_handles_say_what_the_files_are(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}})], [keyed({VOID_NAMESPACE: {"a": 2}})], subtask=7)
    state = savepoint_of(tmp_path, chain)
    (handle,) = state.handles
    assert handle.name == f"state/{OPERATOR}/keyed/totals/part-00007.parquet"
    assert handle.size == (tmp_path / "savepoint" / handle.name).stat().st_size
    assert (handle.epoch, handle.extent) == (2, Extent.ALL)
    assert handle.states == frozenset({(OPERATOR, "keyed", "totals")})


NAMES = ["..", ".", "a/b", "../../x", "Sum", "sum", "ä ö", "x" * 400, "x" * 401, "_timers/a/b", "a%2Fb", "\ud800"]


def test_every_name_of_a_state_has_a_file_of_its_own_within_the_savepoint(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"key": name}}, name) for name in NAMES])
    state = savepoint_of(tmp_path, chain)
    files = [(tmp_path / "savepoint" / handle.name).resolve() for handle in state.handles]
    assert all(file.is_relative_to(tmp_path / "savepoint" / "state" / OPERATOR / "keyed") for file in files)
    assert len({str(file).lower() for file in files}) == len(NAMES)
    assert {name: value for _, name, _, _, value in entries_of(state)} == {name: name for name in NAMES}


def test_columns_show_what_they_hold(tmp_path):
    values = {"ada": (1, None, [True]), "bob": Row(n=1, at=float("nan")), "cyd": User("x", 1), "dan": {(1, 2): {"x"}}}
    chain = chain_of(tmp_path, [keyed({TimeWindow(0, 5): values, VOID_NAMESPACE: {User("eve", 2): print}})])
    (handle,) = savepoint_of(tmp_path, chain).handles
    rows = pq.read_table(tmp_path / "savepoint" / handle.name).to_pylist()
    shown = [(json.loads(row["key_json"]), row["namespace_text"], row["value_json"]) for row in rows]
    window = "TimeWindow(start=0, end=5)"
    assert shown == [
        ("ada", window, "[1, null, [true]]"),
        ("bob", window, '{"n": 1, "at": "nan"}'),
        ("cyd", window, '{"name": "x", "team": 1}'),
        ("dan", window, '[[[1, 2], ["x"]]]'),
        ({"name": "eve", "team": 2}, None, None),
    ]


def test_savepoint_can_be_moved(tmp_path):
    state = savepoint_of(tmp_path, chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}})]))
    expected = entries_of(state)
    shutil.rmtree(tmp_path / "native")
    shutil.move(tmp_path / "savepoint", tmp_path / "elsewhere")
    moved = CanonicalState(LocalFolder(str(tmp_path / "elsewhere")), state.handles, state.subtask)
    assert entries_of(moved) == expected


# --- errors ---------------------------------------------------------------------------------------------------------


def large_savepoint(tmp_path: Path) -> tuple[CanonicalState, Path]:
    contents = {VOID_NAMESPACE: {n: str(n) for n in range(500)}}
    state = savepoint_of(tmp_path, chain_of(tmp_path, [keyed(contents)]))
    return state, tmp_path / "savepoint" / state.handles[0].name


def test_missing_file_is_named_with_operator_and_state(tmp_path):
    state, file = large_savepoint(tmp_path)
    file.unlink()
    with pytest.raises(CorruptStateError, match=r"operator 'Totals': state 'totals' in file .*00000\.parquet.*missing"):
        entries_of(state)


def test_file_that_was_cut_off_is_named(tmp_path):
    state, file = large_savepoint(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorruptStateError, match=r"operator 'Totals': state 'totals' in file .*damaged or cut off"):
        entries_of(state)


def test_flipped_bit_in_the_data_is_found(tmp_path):
    state, file = large_savepoint(tmp_path)
    content = file.read_bytes()
    expected = entries_of(state)
    chosen = random.Random(7)
    found_out = 0
    for _ in range(200):
        damaged = bytearray(content)
        damaged[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        file.write_bytes(damaged)
        try:
            assert entries_of(state) == expected
        except CorruptStateError as error:
            assert "operator 'Totals': state 'totals' in file" in str(error)
            found_out += 1
    assert found_out > 100


def test_file_of_another_state_is_refused(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}}), keyed({VOID_NAMESPACE: {"a": 2}}, "other")])
    state = savepoint_of(tmp_path, chain)
    first, second = (tmp_path / "savepoint" / handle.name for handle in state.handles)
    shutil.copy(second, first)
    with pytest.raises(CorruptStateError, match=r"state 'totals'.*holds keyed state 'other'"):
        entries_of(state)


def test_class_that_is_gone_is_named(tmp_path, monkeypatch):
    state = savepoint_of(tmp_path, chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": Gone(1)}})]))
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    with pytest.raises(StateMismatchError, match=r"state 'totals'.*cannot be read back.*Gone.*under its old name"):
        entries_of(state)


def test_missing_native_file_is_named(tmp_path):
    chain = chain_of(tmp_path, [keyed({VOID_NAMESPACE: {"a": 1}})], subtask=3)
    (tmp_path / "native" / "s3-0").unlink()
    with pytest.raises(CorruptStateError, match="s3-0 is missing; it belongs to subtask 3 of 'Totals, Sink'"):
        savepoint_of(tmp_path, chain)


# --- everything at once ---------------------------------------------------------------------------------------------

scalars = st.one_of(
    st.integers(), st.text(max_size=5), st.booleans(), st.floats(allow_nan=False), st.binary(max_size=5)
)
keys = st.one_of(
    st.integers(0, 20),
    st.sampled_from([1.0, True, "a", "b", "", None]),
    st.tuples(st.integers(0, 3), st.text(max_size=2)),
    st.builds(User, st.sampled_from(["ada", "bob"]), st.integers(0, 3)),
    st.builds(lambda a, b: Row(a=a, b=b), st.integers(0, 3), st.integers(0, 3)),
    st.builds(Row, st.integers(0, 3), st.integers(0, 3)),
)
namespaces = st.one_of(
    st.just(VOID_NAMESPACE),
    st.builds(lambda start: TimeWindow(start, start + 5), st.sampled_from([0, 5])),
    st.just(GlobalWindow()),
    st.builds(lambda at: (at, TimeWindow(0, 5)), st.integers(0, 2)),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(scalars), inner, max_size=3),
        st.builds(lambda a, b: Row(a=a, b=b), inner, inner),
    ),
    max_leaves=6,
)
tables = st.sampled_from(["totals", "Totals", "_timers/x/event-time"])
entries = st.tuples(st.sampled_from([OPERATOR, OTHER]), tables, namespaces, keys)
bases = st.dictionaries(entries, values, max_size=30)
deltas = st.lists(st.dictionaries(entries, st.one_of(st.just(REMOVED), values), max_size=10), max_size=4)


def owned(changes: dict[Any, Any], subtask: int, parallelism: int) -> Blocks:
    """The part of a subtask, as blocks of a state file."""
    owners = KeyOwners(MAX_PARALLELISM, parallelism)
    contents: dict[Any, Any] = {}
    for (operator, table, namespace, key), value in changes.items():
        if owners[key] == subtask:
            contents.setdefault((operator, table), {}).setdefault(namespace, {})[key] = value
    return [keyed(held, table, operator) for (operator, table), held in contents.items()]


@settings(max_examples=60)
@given(base=bases, deltas=deltas, former=st.integers(1, 3), group_rows=st.sampled_from([1, 3, 1000]))
def test_nothing_is_lost_and_nothing_doubled_at_any_parallelism(tmp_path_factory, base, deltas, former, group_rows):
    tmp_path = tmp_path_factory.mktemp("canonical")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet_parts, "ROWS_OF_GROUP", group_rows)
        left = [
            savepoint_of(tmp_path, chain_of(tmp_path, *(owned(each, n, former) for each in [base, *deltas]), subtask=n))
            for n in range(former)
        ]
    expected = dict(base)
    for delta in deltas:
        expected.update(delta)
    expected = {entry: value for entry, value in expected.items() if value is not REMOVED}
    for parallelism in (1, 2, 3):
        found = [
            (operator, table, namespace, key, value)
            for subtask in range(parallelism)
            for state in left
            for operator, table, namespace, key, value in entries_of(
                state, key_group_range(subtask, MAX_PARALLELISM, parallelism)
            )
        ]
        counted = Counter(tuple(entry) for *entry, _ in found)
        assert set(counted.values()) <= {1}
        assert {tuple(entry): value for *entry, value in found} == expected
    shutil.rmtree(tmp_path)
