"""Complete checkpoints on disk: as many as are wanted, with the files they need and no others."""

from __future__ import annotations

import logging
import threading

import pytest

from penstock.checkpoint import removals
from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.leadership import JobLeadership
from penstock.checkpoint.metadata import CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.exceptions import CheckpointError, LeadershipLostError
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.table import Extent
from penstock.testing import Fault, FaultPlan, FaultyFolder

PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path) -> LocalFolder:
    return LocalFolder(str(tmp_path / "job"))


def checkpoint(folder, number: int, *files: str) -> CheckpointMetadata:
    """Written to `folder` as subtasks would, but for its metadata."""
    for file in files:
        folder.write(f"shared/{file}", b"state")
    handles = tuple(StateHandle(f"shared/{file}", number, 5, Extent.ALL) for file in files)
    vertex = VertexEntry((OperatorEntry("o", "operator"),), 1, 128, (handles,))
    return CheckpointMetadata("j" * 32, "job", number, 0, "t", (vertex,))


def add(store: CompletedCheckpointStore, metadata: CheckpointMetadata) -> list[int]:
    """Make a checkpoint complete; the ids of those that were removed for it."""
    unwanted = store.add(metadata)
    store.discard(unwanted)
    store.drain()
    return [each.checkpoint_id for each in unwanted]


def files_in(folder) -> list[str]:
    return sorted(folder.within("shared").names())


def checkpoints_in(folder) -> list[str]:
    return sorted(name for name in folder.names() if name.startswith("chk-"))


def test_layout_is_that_of_flink(folder):
    store = CompletedCheckpointStore(folder, 1)
    add(store, checkpoint(folder, 7, "v0-a"))
    assert sorted(folder.names()) == ["chk-7", "shared", "taskowned"]
    assert folder.within("chk-7").names() == ["_metadata"]
    assert store.path_of(7) == folder.path_of("chk-7")


def test_older_ones_go_when_newer_ones_come(folder):
    store = CompletedCheckpointStore(folder, retained=2)
    removed = [add(store, checkpoint(folder, number, f"v0-{number}")) for number in (1, 2, 3, 4)]
    assert removed == [[], [], [1], [2]]
    assert (checkpoints_in(folder), files_in(folder)) == (["chk-3", "chk-4"], ["v0-3", "v0-4"])


def test_file_stays_as_long_as_a_checkpoint_needs_it(folder):
    store = CompletedCheckpointStore(folder, 1)
    add(store, checkpoint(folder, 1, "v0-base", "v0-one"))
    add(store, checkpoint(folder, 2, "v0-base", "v0-two"))
    assert files_in(folder) == ["v0-base", "v0-two"]
    add(store, checkpoint(folder, 3, "v0-new"))
    assert files_in(folder) == ["v0-new"]


def test_checkpoint_that_somebody_reads_keeps_its_files(folder):
    store = CompletedCheckpointStore(folder, 1)
    read = checkpoint(folder, 1, "v0-one")
    add(store, read)
    with store.holding(read):
        add(store, checkpoint(folder, 2, "v0-two"))
        assert files_in(folder) == ["v0-one", "v0-two"]
    store.drain()
    assert files_in(folder) == ["v0-two"]


def test_two_readers_of_one_checkpoint_do_not_disturb_each_other(folder):
    store = CompletedCheckpointStore(folder, 1)
    read = checkpoint(folder, 1, "v0-one")
    add(store, read)
    with store.holding(read):
        with store.holding(read):
            add(store, checkpoint(folder, 2, "v0-two"))
        store.drain()
        assert files_in(folder) == ["v0-one", "v0-two"]
    store.drain()
    assert files_in(folder) == ["v0-two"]


def test_checkpoint_that_is_still_wanted_stays_after_it_was_read(folder):
    store = CompletedCheckpointStore(folder, 1)
    read = checkpoint(folder, 1, "v0-one")
    add(store, read)
    with store.holding(read):
        pass
    assert files_in(folder) == ["v0-one"]


def test_leftovers_of_a_region_are_removed_and_nothing_else(folder):
    store = CompletedCheckpointStore(folder, 1)
    add(store, checkpoint(folder, 1, "v0-kept", "v2-kept"))
    for name in ("v0-left", "v1-left", "v10-left", "v2-left"):
        folder.write(f"shared/{name}", b"")
    store.remove_leftovers(frozenset({0, 1}))
    store.drain()
    assert files_in(folder) == ["v0-kept", "v10-left", "v2-kept", "v2-left"]


def test_everything_goes_with_the_job(folder):
    store = CompletedCheckpointStore(folder, 1)
    add(store, checkpoint(folder, 1, "v0-one"))
    store.remove_all()
    assert folder.names() == []


# --- failing storage -------------------------------------------------------------------------------------------------


@pytest.fixture
def faulty(folder, tmp_path):
    def make(*faults: Fault) -> FaultyFolder:
        return FaultyFolder(folder, FaultPlan(str(tmp_path / "notes"), faults))

    return make


def test_file_that_cannot_be_removed_is_reported_and_in_nobodys_way(folder, faulty, caplog):
    store = CompletedCheckpointStore(faulty(Fault("delete", times=9)), 1)
    add(store, checkpoint(folder, 1, "v0-one"))
    with caplog.at_level(logging.WARNING):
        assert add(store, checkpoint(folder, 2, "v0-two")) == [1]
        store.remove_leftovers(frozenset({0}))
        store.remove_all()
    assert "shared/v0-one is no longer needed but cannot be removed" in caplog.text
    assert files_in(folder) == ["v0-one", "v0-two"]


class SlowToRemove(FaultyFolder):
    """Removes nothing before it may."""

    may_remove = threading.Event()

    def within(self, name):
        return SlowToRemove(self.folder.within(name), self.plan)

    def delete(self, name):
        assert self.may_remove.wait(PATIENCE_S)
        super().delete(name)

    def delete_all(self):
        assert self.may_remove.wait(PATIENCE_S)
        super().delete_all()


def test_slow_removal_keeps_no_checkpoint_waiting_until_the_job_ends(folder, faulty):
    SlowToRemove.may_remove.clear()
    store = CompletedCheckpointStore(SlowToRemove(folder, faulty().plan), 1)
    for number in range(1, 6):
        store.discard(store.add(checkpoint(folder, number, f"v0-{number}")))
    assert len(files_in(folder)) == len(checkpoints_in(folder)) == 5
    SlowToRemove.may_remove.set()
    store.close()
    assert (files_in(folder), checkpoints_in(folder)) == (["v0-5"], ["chk-5"])


def test_store_that_removes_less_than_comes_slows_the_job_down_instead_of_filling_up(folder, faulty, monkeypatch):
    monkeypatch.setattr(removals, "_MOST_WAITING", 3)
    SlowToRemove.may_remove.clear()
    store = CompletedCheckpointStore(SlowToRemove(folder, faulty().plan), 1)
    added: list[int] = []

    def add_ten() -> None:
        for number in range(1, 11):
            store.discard(store.add(checkpoint(folder, number, f"v0-{number}")))
            added.append(number)

    adding = threading.Thread(target=add_ten, daemon=True)
    adding.start()
    adding.join(0.5)
    assert adding.is_alive() and len(added) <= 5
    SlowToRemove.may_remove.set()
    adding.join(PATIENCE_S)
    store.close()
    assert (len(added), files_in(folder)) == (10, ["v0-10"])


def test_who_does_not_lead_any_more_removes_nothing(folder):
    leadership = JobLeadership()
    store = CompletedCheckpointStore(folder, 1, leadership)
    add(store, checkpoint(folder, 1, "v0-one"))
    unwanted = store.add(checkpoint(folder, 2, "v0-two"))

    def is_lost() -> None:
        raise LeadershipLostError("another process leads")

    leadership.check = is_lost
    store.discard(unwanted)
    store.close()
    assert (files_in(folder), checkpoints_in(folder)) == (["v0-one", "v0-two"], ["chk-1", "chk-2"])


def test_leftovers_that_cannot_be_listed_stay(folder, faulty, caplog):
    store = CompletedCheckpointStore(faulty(Fault("list")), 1)
    folder.write("shared/v0-left", b"")
    store.remove_leftovers(frozenset({0}))
    assert "cannot be removed" in caplog.text and files_in(folder) == ["v0-left"]


def test_failed_checkpoint_is_not_there(folder, faulty):
    store = CompletedCheckpointStore(faulty(Fault("rename", at=2, path="*/_metadata")), 2)
    add(store, checkpoint(folder, 1, "v0-one"))
    with pytest.raises(OSError, match="planned fault"):
        add(store, checkpoint(folder, 2, "v0-two"))
    assert checkpoints_in(folder) == ["chk-1"]


def test_checkpoint_that_was_written_but_counts_as_failed_is_taken_back(folder, faulty):
    """A job that continues from the one before must not leave this one to be found: it may die then."""
    store = CompletedCheckpointStore(faulty(Fault("rename", at=2, path="*/_metadata", action="lose-answer")), 1)
    add(store, checkpoint(folder, 1))
    with pytest.raises(OSError, match="planned fault"):
        add(store, checkpoint(folder, 2))
    assert find_checkpoint(folder.uri).metadata.checkpoint_id == 1


def test_job_cannot_go_back_before_such_a_checkpoint_is_taken_back(folder, faulty):
    lost = Fault("rename", at=2, path="*/_metadata", action="lose-answer")
    store = CompletedCheckpointStore(faulty(lost, Fault("delete", times=2)), 1)
    add(store, checkpoint(folder, 1))
    with pytest.raises(OSError, match="rename"):
        add(store, checkpoint(folder, 2))
    with pytest.raises(OSError, match="delete"):
        store.remove_doubtful()
    store.remove_doubtful()
    assert checkpoints_in(folder) == ["chk-1"]


def test_storage_that_is_not_there_is_explained(faulty):
    with pytest.raises(CheckpointError, match=r"checkpoints cannot be kept in file://.*/job: .*planned fault"):
        CompletedCheckpointStore(faulty(Fault("make")), 1)


def test_half_removed_job_has_no_checkpoint(folder, faulty):
    """Its metadata goes first: what is left is not taken for a damaged checkpoint."""
    store = CompletedCheckpointStore(faulty(Fault("delete", at=3)), retained=2)
    add(store, checkpoint(folder, 1, "v0-one"))
    add(store, checkpoint(folder, 2, "v0-two"))
    store.remove_all()
    with pytest.raises(CheckpointError, match="no checkpoint or savepoint at"):
        find_checkpoint(folder.uri)


# --- claimed checkpoints ---------------------------------------------------------------------------------------------


def test_claimed_checkpoint_is_removed_with_its_files(folder):
    store = CompletedCheckpointStore(folder, retained=2)
    add(store, checkpoint(folder, 1, "v0-one"))
    claimed = checkpoint(folder, 2, "v0-two")
    add(store, claimed)
    store.remove_claimed(FoundCheckpoint(claimed, folder, "there"))
    store.drain()
    assert (checkpoints_in(folder), files_in(folder)) == (["chk-1"], ["v0-one"])


def test_what_a_killed_job_has_not_removed_goes_with_the_claimed_checkpoint(folder):
    """It shares files with it, and would be taken for the newest checkpoint of the folder later."""
    left = CompletedCheckpointStore(folder, retained=3)
    for number, names in enumerate((["v0-base", "v0-one"], ["v0-base", "v0-two"], ["v0-base", "v0-three"]), start=1):
        left.add(claimed := checkpoint(folder, number, *names))
    folder.within("chk-4").make()  # It was killed again, before it had written what belongs there.
    store = CompletedCheckpointStore(folder, retained=1)
    store.remove_claimed(FoundCheckpoint(claimed, folder, "there"))
    store.drain()
    assert (checkpoints_in(folder), files_in(folder)) == (["chk-4"], [])


def test_checkpoints_that_were_to_be_retained_stay_whole_when_a_newer_one_is_claimed(folder):
    left = CompletedCheckpointStore(folder, retained=3)
    for number in (1, 2, 3):
        left.add(claimed := checkpoint(folder, number, "v0-base", f"v0-{number}"))
    store = CompletedCheckpointStore(folder, retained=2)
    store.remove_claimed(FoundCheckpoint(claimed, folder, "there"))
    store.drain()
    assert (checkpoints_in(folder), files_in(folder)) == (["chk-2"], ["v0-2", "v0-base"])
    assert find_checkpoint(folder.path_of("chk-2")).metadata.checkpoint_id == 2


def test_checkpoints_newer_than_the_claimed_one_stay_whole(folder):
    left = CompletedCheckpointStore(folder, retained=3)
    left.add(claimed := checkpoint(folder, 1, "v0-base", "v0-one"))
    left.add(checkpoint(folder, 2, "v0-base", "v0-two"))
    store = CompletedCheckpointStore(folder, retained=1)
    store.remove_claimed(FoundCheckpoint(claimed, folder, "there"))
    store.drain()
    assert (checkpoints_in(folder), files_in(folder)) == (["chk-2"], ["v0-base", "v0-two"])
    assert find_checkpoint(folder.path_of("chk-2")).metadata.checkpoint_id == 2


@pytest.mark.parametrize("deletion", range(1, 7))
def test_removal_of_a_claimed_checkpoint_can_stop_anywhere(folder, faulty, deletion):
    """What is found afterwards is the claimed checkpoint, whole, or nothing; never one that it has replaced."""
    left = CompletedCheckpointStore(folder, retained=3)
    for number in (1, 2, 3):
        left.add(claimed := checkpoint(folder, number, "v0-base", f"v0-{number}"))
    store = CompletedCheckpointStore(folder, retained=1)
    broken = faulty(Fault("delete", at=deletion, times=100))
    store.remove_claimed(FoundCheckpoint(claimed, broken, "there"))
    store.drain()
    found = checkpoints_in(folder)
    if "chk-3" in found:
        assert find_checkpoint(folder.path_of("chk-3")).metadata.checkpoint_id == 3
    else:
        assert found == []


def test_claimed_checkpoint_that_cannot_be_removed_is_reported(folder, faulty, caplog):
    store = CompletedCheckpointStore(folder, 1)
    claimed = checkpoint(folder, 1, "v0-one")
    add(store, claimed)
    store.remove_claimed(FoundCheckpoint(claimed, faulty(Fault("delete")), "there"))
    store.drain()
    assert "there is no longer needed but cannot be removed" in caplog.text
