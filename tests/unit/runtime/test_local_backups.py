"""Copies of state on the host that wrote it: used where they are whole, never needed, gone when they are old."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.runtime.local_backups import BackupSettings, LocalBackups
from penstock.runtime.saved_state import FileChain, StateHandle, following_handles
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.testing.memory_folder import MemoryFolder

JOB = "0" * 32


class CountingFolder(MemoryFolder):
    """Says which files were read from the storage."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, name):
        self.opened.append(name)
        return super().open(name)


def backups_in(folder: Path, job: str = JOB, restores: bool = True) -> LocalBackups:
    return LocalBackups(BackupSettings(job, str(folder), restores))


def write(backups: LocalBackups, storage: MemoryFolder, epoch: int, extent: Extent = Extent.ALL) -> StateHandle:
    name = f"shared/v0-s0-e{epoch}-ab"
    with backups.create(storage, name) as out:
        writer = StateFileWriter(out)
        writer.add("op", "keyed", "count", encode_state({"a": epoch}))
        writer.finish()
    handle = StateHandle(name, epoch, writer.size, extent, writer.states())
    backups.wrote(0, 0, handle)
    return handle


def copies(folder: Path, job: str = JOB) -> set[str]:
    return {path.name for path in folder.glob(f"*/{job}/v*")}


def read(backups: LocalBackups, storage: MemoryFolder, *handles: StateHandle) -> list:
    chain = FileChain(backups.first(storage), handles, 0)
    return [block.value for block in chain.blocks(frozenset({"op"}), range(128))]


def test_copy_is_read_instead_of_the_storage(tmp_path):
    storage = CountingFolder()
    first = backups_in(tmp_path)
    handle = write(first, storage, 1)
    first.close()
    again = backups_in(tmp_path)  # Another process on the same host.
    assert read(again, storage, handle) == [{"a": 1}] and storage.opened == []
    again.close()


@pytest.mark.parametrize("damage", ["gone", "cut off", "changed"])
def test_storage_is_read_where_the_copy_is_no_good(tmp_path, damage):
    storage = CountingFolder()
    backups = backups_in(tmp_path)
    handle = write(backups, storage, 1)
    [path] = tmp_path.glob(f"*/{JOB}/v*")
    match damage:
        case "gone":
            path.unlink()
        case "cut off":
            path.write_bytes(path.read_bytes()[:-1])
        case "changed":
            path.write_bytes(path.read_bytes().replace(b"PENSTOCK", b"PENSTOCX", 1)[:20] + path.read_bytes()[21:])
    assert read(backups, storage, handle) == [{"a": 1}] and storage.opened == [handle.name]
    backups.close()


def test_copies_are_only_made_where_they_are_not_to_be_used(tmp_path):
    storage = CountingFolder()
    backups = backups_in(tmp_path, restores=False)
    handle = write(backups, storage, 1)
    assert copies(tmp_path) and read(backups, storage, handle) == [{"a": 1}] and storage.opened == [handle.name]
    backups.close()


def test_copy_for_which_there_is_no_room_does_not_fail_the_checkpoint(tmp_path, monkeypatch):
    storage = CountingFolder()
    backups = backups_in(tmp_path)

    def no_room(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.runtime.local_backups.open_new", no_room)
    handle = write(backups, storage, 1)
    assert copies(tmp_path) == set() and read(backups, storage, handle) == [{"a": 1}]
    backups.close()


def test_file_that_the_storage_does_not_take_leaves_no_copy(tmp_path):
    backups = backups_in(tmp_path)

    class Full(MemoryFolder):
        def create(self, name):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError), backups.create(Full(), "shared/v0-s0-e1-ab"):
        pytest.fail("nothing can be written")
    assert copies(tmp_path) == set()
    backups.close()


@given(st.lists(st.tuples(st.sampled_from(Extent), st.booleans()), max_size=12))
def test_just_what_the_newest_checkpoint_needs_is_kept(tmp_path_factory, snapshots):
    folder = tmp_path_factory.mktemp("copies")
    backups, storage = backups_in(folder), MemoryFolder()
    needed: tuple[StateHandle, ...] = ()
    newer: list[StateHandle] = []
    for epoch, (extent, is_complete) in enumerate(snapshots, start=1):
        newer.append(write(backups, storage, epoch, extent if epoch > 1 else Extent.ALL))
        if is_complete:
            backups.completed(epoch)
            for handle in newer:
                needed = following_handles(needed, handle)
            newer = []
        assert copies(folder) == {handle.name.removeprefix("shared/") for handle in [*needed, *newer]}
    backups.close()


def test_restored_subtask_keeps_what_it_was_restored_from_and_no_more(tmp_path):
    storage = MemoryFolder()
    backups = backups_in(tmp_path)
    handles = [write(backups, storage, epoch) for epoch in (1, 2)]
    backups.close()
    again = backups_in(tmp_path)
    again.restored(0, 0, (handles[0],))  # The second one was never complete.
    assert copies(tmp_path) == {"v0-s0-e1-ab"}
    again.close()


def test_ended_region_removes_its_own_and_the_last_one_the_folder(tmp_path):
    backups, others, storage = backups_in(tmp_path), backups_in(tmp_path), MemoryFolder()
    write(backups, storage, 1)
    backups.remove(frozenset({0}))
    assert copies(tmp_path) == set() and list(tmp_path.glob(f"*/{JOB}"))
    backups.close()
    others.remove(frozenset({7}))
    others.close()
    assert list(tmp_path.glob(f"*/{JOB}")) == []


def test_folder_of_a_job_that_lives_here_no_more_is_removed_by_the_next_one(tmp_path):
    storage = MemoryFolder()
    living, dead = backups_in(tmp_path, "1" * 32), backups_in(tmp_path, "2" * 32)
    write(living, storage, 1)
    write(dead, storage, 1)
    dead.close()
    third = backups_in(tmp_path, "3" * 32)
    assert {path.name for path in tmp_path.glob("*/*")} == {"1" * 32, "3" * 32}
    for each in (living, third):
        each.close()


def test_nobody_else_can_read_them(tmp_path):
    backups = backups_in(tmp_path)
    write(backups, MemoryFolder(), 1)
    [path] = tmp_path.glob(f"*/{JOB}/v*")
    assert [os.stat(each).st_mode & 0o077 for each in (path, path.parent, path.parent.parent)] == [0, 0, 0]
    backups.close()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"execution.checkpointing.local-backup.enabled": "true"}, BackupSettings(JOB, None, restores=False)),
        ({"execution.state-recovery.from-local": "true"}, BackupSettings(JOB, None, restores=True)),
        (
            {
                "execution.state-recovery.from-local": "true",
                "execution.checkpointing.local-backup.dirs": "/fast",
            },
            BackupSettings(JOB, "/fast", restores=True),
        ),
    ],
)
def test_keys_of_flink(settings, expected):
    assert BackupSettings.of(Configuration.from_dict(settings), JOB) == expected
