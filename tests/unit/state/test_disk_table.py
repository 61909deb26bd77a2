"""State on disk: what is in memory, what is in the file, and what a snapshot costs."""

from __future__ import annotations

import lmdb
import pytest

from penstock.common.exceptions import LocalStateError, StateAccessError
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.contents import EncodedEntries
from penstock.runtime.state.entry_store import EntryStore
from penstock.runtime.state.key_store import KeyStore
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent
from penstock.runtime.timers import TIMER_TABLE_PREFIX

CACHE = 100


@pytest.fixture
def backend(tmp_path):
    made = keyed_state(tmp_path)
    yield made
    made.dispose()


def keyed_state(folder, tracks_changes=True) -> KeyedStateBackend:
    disk = DiskBackend((str(folder),), CACHE, tracks_changes)
    return KeyedStateBackend("op", make_table=disk.tables("run", "s0", "op"))


def files(folder) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def live_objects(table) -> int:
    return sum(len(keys._recent) + len(keys._older) for keys in [*table._live.namespaces.values(), table._cached])


def fill(table, count) -> None:
    for number in range(count):
        table.put(VOID_NAMESPACE, number, [number])


def whole(blocks) -> dict:
    """The entries of keys alone, from all parts of a snapshot."""
    return {key: value for contents in blocks for key, value in contents[VOID_NAMESPACE].items()}


def test_a_small_state_needs_no_file(backend, tmp_path):
    fill(backend.table("t"), CACHE // 2)
    list(backend.snapshot(Extent.ALL))
    assert files(tmp_path) == []


def test_a_large_state_has_a_bounded_number_of_objects_in_memory(backend, tmp_path):
    table = backend.table("t")
    fill(table, 20 * CACHE)
    assert live_objects(table) <= CACHE + 1
    assert len(table) == 20 * CACHE
    assert [table.get(VOID_NAMESPACE, number) for number in (0, 777, 1999)] == [[0], [777], [1999]]
    assert files(tmp_path) != []


def test_changes_are_remembered_on_disk_when_they_are_many(backend):
    table = backend.table("t")
    fill(table, 20 * CACHE)
    assert sum(map(len, table.changed.values())) <= 5 * CACHE
    changed = [contents[VOID_NAMESPACE] for contents in table.blocks(Extent.CHANGES)]
    assert {key: value for part in changed for key, value in part.items()} == {n: [n] for n in range(20 * CACHE)}


def test_the_file_is_gone_when_the_state_is_not_needed_any_more(backend, tmp_path):
    fill(backend.table("t"), 10 * CACHE)
    backend.dispose()
    assert files(tmp_path) == []
    with pytest.raises(LocalStateError, match="working state was used after its task was closed"):
        backend.table("t").get(VOID_NAMESPACE, 1)


def test_what_an_operator_changes_in_place_is_kept(backend):
    """As the quick window operators do: first all elements, then the record of what changed."""
    table = backend.table("t")
    for _ in range(3):
        panes = table.entries.setdefault("window", {})
        for number in range(5 * CACHE):
            held = panes.get(number)
            if held is None:
                panes[number] = [1]
            else:
                held.append(1)
        table.changed.written_all("window", range(5 * CACHE), range(5 * CACHE))
    assert all(table.get("window", number) == [1, 1, 1] for number in range(5 * CACHE))


def test_entries_can_be_used_like_a_dictionary_of_dictionaries(backend):
    entries = backend.table("t").entries
    entries["n"] = {number: str(number) for number in range(3 * CACHE)}
    assert len(entries["n"]) == 3 * CACHE and 5 in entries["n"] and 5.0 in entries["n"] and "5" not in entries["n"]
    assert entries["n"].pop(5) == "5" and entries["n"].pop(5, None) is None
    assert sorted(entries["n"]) == [number for number in range(3 * CACHE) if number != 5]
    del entries["n"]
    assert "n" not in entries and list(entries) == [] and not entries
    assert entries.get("n", "nothing") == "nothing"


def test_equal_keys_of_different_types_are_one_key_and_equal_hashes_are_not(backend):
    table = backend.table("t")
    table.put("n", 1, "one")
    table.put("n", 1 << 32, "another with the hash of one")
    fill(table, 5 * CACHE)
    assert (table.get("n", 1.0), table.get("n", True), table.get("n", 1 << 32)) == (
        "one",
        "one",
        "another with the hash of one",
    )
    table.remove("n", 1.0)
    fill(table, 5 * CACHE)
    assert (table.get("n", 1), table.get("n", 1 << 32)) == (None, "another with the hash of one")


def test_a_delta_holds_what_was_touched_and_nothing_else(backend):
    table = backend.table("t")
    fill(table, 10 * CACHE)
    table.snapshot_written(Extent.ALL)
    table.put(VOID_NAMESPACE, 7, "new")
    table.remove(VOID_NAMESPACE, 8)
    assert whole(table.blocks(Extent.CHANGES)) == {7: "new", 8: REMOVED}
    table.snapshot_written(Extent.CHANGES)
    assert list(table.blocks(Extent.CHANGES)) == []
    assert whole(table.blocks(Extent.SINCE_BASE)) == {7: "new", 8: REMOVED}


def test_a_snapshot_that_was_not_stored_leaves_everything_to_be_saved_again(backend):
    table = backend.table("t")
    table.snapshot_written(Extent.ALL)
    fill(table, 3 * CACHE)
    assert len(list(table.blocks(Extent.SINCE_BASE))) > 0
    changed = [contents[VOID_NAMESPACE] for contents in table.blocks(Extent.CHANGES)]
    assert sum(map(len, changed)) == 3 * CACHE


class CountsDecoding:
    decoded = 0

    def __init__(self, number):
        self.number = number

    def __setstate__(self, state):
        CountsDecoding.decoded += 1
        self.__dict__ = state


def test_a_full_snapshot_goes_from_disk_to_disk_in_parts_without_being_decoded(backend, tmp_path):
    table = backend.table("t")
    for number in range(30 * CACHE):
        table.put(VOID_NAMESPACE, number, (CountsDecoding(number), b"x" * 1000))
    CountsDecoding.decoded = 0
    restored = keyed_state(tmp_path)
    sizes = []
    for name, contents in backend.snapshot(Extent.ALL):
        content = encode_state(contents)
        sizes.append(len(content))
        restored.restore(name, decode_state(content), extent=Extent.ALL)
    assert len(sizes) >= 2 and max(sizes) < 3_000_000
    assert CountsDecoding.decoded == 0
    assert len(restored) == 30 * CACHE
    assert restored.table("t").get(VOID_NAMESPACE, 1234)[0].number == 1234
    restored.dispose()


def test_encoded_entries_are_contents_to_everybody_else(backend):
    fill(backend.table("t"), 3 * CACHE)
    contents = [contents for _, contents in backend.snapshot(Extent.ALL)]
    assert all(isinstance(each, EncodedEntries) for each in contents)
    found = {key: value for each in contents for key, value in each[VOID_NAMESPACE].items()}
    assert found == {number: [number] for number in range(3 * CACHE)}


def test_one_entry_of_a_large_map_is_found_without_the_others(backend, monkeypatch):
    state = backend.state(MapStateDescriptor("m"))
    backend.current_key = "key"
    state.put_all({number: str(number) for number in range(50 * CACHE)})
    fill(backend.table("other"), 10)
    read = []
    monkeypatch.setattr(EntryStore, "get", _counting(read, EntryStore.get))
    assert [state.get(number) for number in (1, 4000, -1)] == ["1", "4000", None]
    assert 4999 in state and not state.is_empty()
    assert len(read) <= 6
    page = backend.table("m").get(VOID_NAMESPACE, "key")
    assert page.live_count() <= 4 * CACHE


def _counting(calls, method):
    def counted(self, *arguments):
        calls.append(arguments)
        return method(self, *arguments)

    return counted


def test_a_change_of_one_entry_of_a_map_is_a_delta_of_one_entry(backend):
    state = backend.state(MapStateDescriptor("m"))
    backend.current_key = "key"
    state.put_all({number: number for number in range(10 * CACHE)})
    backend.snapshot_written(Extent.ALL)
    state.put(5, "new")
    state.remove(6)
    assert [contents for _, contents in backend.snapshot(Extent.CHANGES)] == [
        {VOID_NAMESPACE: {"key": {5: "new", 6: REMOVED}}}
    ]


def test_a_loop_over_a_large_map_may_change_it(backend):
    state = backend.state(MapStateDescriptor("m"))
    backend.current_key = "key"
    state.put_all({number: number for number in range(20 * CACHE)})
    seen = []
    for map_key, value in state.items():
        seen.append(map_key)
        state.put(map_key, value + 1)
        if map_key % 2:
            state.remove(map_key)
    assert sorted(seen) == list(range(20 * CACHE))
    assert dict(state.items()) == {number: number + 1 for number in range(0, 20 * CACHE, 2)}


def test_a_map_that_is_emptied_entry_by_entry_is_gone(backend):
    state = backend.state(MapStateDescriptor("m"))
    backend.current_key = "key"
    state.put_all({number: number for number in range(10 * CACHE)})
    for map_key in list(state.keys()):
        state.remove(map_key)
    assert state.is_empty() and len(backend) == 0


@pytest.mark.parametrize("to_disk", [True, False])
def test_maps_move_between_heap_and_disk(tmp_path, to_disk):
    heap = KeyedStateBackend("op", make_table=HeapBackend().tables("run", "s0", "op"))
    disk = keyed_state(tmp_path)
    before, after = (heap, disk) if to_disk else (disk, heap)
    maps = {key: {n: (key, n) for n in range(key)} for key in (1, 3 * CACHE, 30 * CACHE)}
    for key, contents in maps.items():
        before.current_key = key
        before.state(MapStateDescriptor("m")).put_all(contents)
    for name, saved in before.snapshot(Extent.ALL):
        after.restore(name, decode_state(encode_state(saved)), extent=Extent.ALL)
    for key, contents in maps.items():
        after.current_key = key
        assert dict(after.state(MapStateDescriptor("m")).items()) == contents
    disk.dispose()


def test_saved_maps_cannot_become_values(backend, tmp_path):
    backend.current_key = "key"
    backend.state(MapStateDescriptor("m")).put_all({number: number for number in range(10 * CACHE)})
    restored = keyed_state(tmp_path)
    for name, contents in backend.snapshot(Extent.ALL):
        restored.restore(name, contents)
    with pytest.raises(StateAccessError, match="operator 'op': state 'm' was saved as map state and cannot be read"):
        restored.state(ValueStateDescriptor("m"))
    restored.dispose()


def test_saved_values_cannot_become_maps(backend):
    backend.table("v").put(VOID_NAMESPACE, "key", 5)
    with pytest.raises(
        StateAccessError, match="state 'v' was restored with values of type int and cannot be map state"
    ):
        backend.state(MapStateDescriptor("v"))


def test_map_keys_that_are_equal_to_themselves_only_are_refused(backend):
    state = backend.state(MapStateDescriptor("m"))
    backend.current_key = "key"
    with pytest.raises(ValueError, match="a object cannot be a key: it compares by identity"):
        for _ in range(3 * CACHE):
            state.put(object(), 1)


def test_timers_stay_in_memory(tmp_path):
    make_table = DiskBackend((str(tmp_path),), cache_entries=1).tables("run", "s0", "op")
    timers = make_table(f"{TIMER_TABLE_PREFIX}t/event-time")
    fill(timers, 100)
    assert files(tmp_path) == []


def test_without_changes_to_track_only_full_snapshots_are_taken(tmp_path):
    backend = keyed_state(tmp_path, tracks_changes=False)
    fill(backend.table("t"), 5 * CACHE)
    assert not backend.has_changes()
    saved = [contents for _, contents in backend.snapshot(Extent.ALL)]
    backend.snapshot_written(Extent.ALL)
    assert sum(len(each[VOID_NAMESPACE]) for each in saved) == 5 * CACHE
    backend.dispose()


def _write_one(make_folder):
    EntryStore(make_folder).write([(b"address", "name", b"name", b"value")])


@pytest.mark.parametrize("use", [_write_one, KeyStore])
def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(use):
    def no_room():
        raise OSError(28, "No space left on device", "/full/disk")

    message = r"working state cannot be written: .*'/full/disk'; .*state\.backend\.rocksdb\.localdir"
    with pytest.raises(LocalStateError, match=message):
        use(no_room)


def test_a_disk_that_is_full_before_the_first_write_is_an_error_that_says_where(tmp_path, monkeypatch):
    def no_room(*_, **__):
        raise lmdb.DiskError("No space left on device")

    monkeypatch.setattr(lmdb, "open", no_room)
    with pytest.raises(LocalStateError, match=f"cannot be written to {tmp_path}: .*No space left on device"):
        _write_one(lambda: tmp_path)


def test_the_file_grows_as_needed(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.runtime.state.entry_store._FIRST_MAP_SIZE", 1 << 20)
    backend = keyed_state(tmp_path)
    table = backend.table("t")
    for number in range(4000):
        table.put(VOID_NAMESPACE, number, b"x" * 1000)
    assert all(table.get(VOID_NAMESPACE, number) == b"x" * 1000 for number in range(0, 4000, 7))
    backend.dispose()
