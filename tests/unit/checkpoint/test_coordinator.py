"""From the subtasks' acknowledgements to a complete checkpoint, or to one that failed."""

from __future__ import annotations

import dataclasses
import pickle
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.checkpoint.coordinator import CheckpointCoordinator, CheckpointFailedError
from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import restore_job
from penstock.checkpoint.statistics import CheckpointStatsTracker
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.moment import Moment
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.graph.regions import pipelined_regions
from penstock.runtime.protocol import EpochOutcome, TaskAck
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.testing import Fault, FaultPlan, FaultyFolder

OUTCOME = EpochOutcome(False, None, 0, 0, MIN_LONG_VALUE, [], {}, {}, {})


def graph_of(regions: int = 1, parallelism: int = 1):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    for number in range(regions):
        env.from_sequence(1, 10).uid(f"source {number}").key_by(lambda n: n).map(str).uid(f"map {number}").print()
    return build_job_graph(env.get_stream_graph())


class Job:
    """The checkpoints of a job without the job: the test answers for its subtasks."""

    def __init__(self, tmp_path, *faults: Fault, regions: int = 1, restored=None, **options):
        self.local = LocalFolder(str(tmp_path / "job"))
        self.folder = FaultyFolder(self.local, FaultPlan(str(tmp_path / "notes"), faults))
        self.graph = graph_of(regions)
        fitted = None if restored is None else restore_job(self.graph, restored, False)
        self.stats = CheckpointStatsTracker()
        self.checkpoints = JobCheckpoints(
            "a" * 32, self.graph, CompletedCheckpointStore(self.folder, 1), self.stats, True, fitted
        )
        self.regions = pipelined_regions(self.graph)
        self.coordinators = [
            CheckpointCoordinator(self.checkpoints, region, CheckpointOptions(interval_ms=0, **options))
            for region in self.regions
        ]
        self.coordinator = self.coordinators[0]

    def checkpoint(self, region=0, *, committables=None, position=None, now_ms=100, **said):
        """A checkpoint of a region; `said` is in the acknowledgement of each of its subtasks."""
        number = self.begin(region, now_ms)
        return self.complete(region, number, committables=committables, position=position, now_ms=now_ms, **said)

    def begin(self, region=0, now_ms=100):
        """Its number; `complete` follows, and other regions may have checkpoints in between."""
        number = self.checkpoints.next_id()
        self.coordinators[region].start(number, Moment(now_ms, now_ms))
        return number

    def complete(self, region, number, *, committables=None, position=None, now_ms=100, **said):
        coordinator = self.coordinators[region]
        acks = [self._ack(vertex, number, committables or {}, said) for vertex in sorted(self.regions[region])]
        coordinator.acknowledged(acks)
        return coordinator.complete_acknowledged({f"position {region}": position}, Moment(now_ms + 50, now_ms + 50))

    def _ack(self, vertex, number, committables, said):
        handle = None
        if "snapshot_failure" not in said:
            name = f"shared/v{vertex}-s0-e{number}"
            with self.local.create(name) as out:
                writer = StateFileWriter(out)
                writer.finish()
            handle = StateHandle(name, number, writer.size, Extent.ALL)
        ack = TaskAck(vertex, 0, number, handle, OUTCOME, 100, 130, committables if vertex in (0, 2) else {})
        return dataclasses.replace(ack, **said)

    def on_disk(self):
        return find_checkpoint(self.local.uri).metadata


def committed(metadata) -> dict[str, list]:
    return {operator: pickle.loads(content) for operator, content in metadata.committables.items()}


def test_complete_checkpoint_is_on_disk_before_anything_is_committed(tmp_path):
    job = Job(tmp_path)
    assert job.checkpoint(committables={"sink": ["file 1"]}, position="at 3") == {"sink": ["file 1"]}
    metadata = job.on_disk()
    assert (metadata.checkpoint_id, committed(metadata)) == (1, {"sink": ["file 1"]})
    assert pickle.loads(metadata.positions["position 0"]) == "at 3"
    assert [handle.name for handle in metadata.handles()] == ["shared/v0-s0-e1", "shared/v1-s0-e1"]
    assert job.coordinator.completed_id == 1
    assert {order.saved[0].handles[0].epoch for order in job.coordinator.orders().values()} == {1}


def test_what_was_committed_is_not_committed_with_the_next(tmp_path):
    job = Job(tmp_path)
    job.checkpoint(committables={"sink": ["file 1"]})
    assert job.checkpoint(committables={"sink": ["file 2"]}) == {"sink": ["file 2"]}
    assert job.checkpoint() == {}
    assert committed(job.on_disk()) == {}


def test_statistics_report_sizes_and_times(tmp_path):
    job = Job(tmp_path)
    job.checkpoint(snapshot_ms=7)
    [stats] = job.stats.history()
    assert (stats.status, stats.num_subtasks, stats.num_acknowledged) == ("COMPLETED", 2, 2)
    size = 2 * job.local.size("shared/v0-s0-e1")
    assert (stats.state_size, stats.checkpointed_size, stats.duration_ms) == (size, size, 30)
    assert stats.external_path == job.local.path_of("chk-1")
    assert stats.tasks[0][0].snapshot_ms == 7
    job.checkpoint()
    assert [each.discarded for each in job.stats.history()] == [False, True]


# --- failures --------------------------------------------------------------------------------------------------------


def test_state_that_could_not_be_written_fails_the_checkpoint_and_the_job(tmp_path):
    job = Job(tmp_path)
    message = (
        r"checkpoint 1 failed: state could not be written: disk full \(1 in a row, "
        r"execution.checkpointing.tolerable-failed-checkpoints is 0\)"
    )
    with pytest.raises(CheckpointFailedError, match=message):
        job.checkpoint(snapshot_failure="disk full")
    assert job.stats.counts()["failed"] == 1


def test_as_many_checkpoints_may_fail_in_a_row_as_are_tolerable(tmp_path):
    job = Job(tmp_path, tolerable_failures=2)
    for _ in range(3):
        assert job.checkpoint(snapshot_failure="disk full") is None
        assert job.checkpoint(snapshot_failure="disk full") is None
        assert job.checkpoint() == {}
    assert job.checkpoint(snapshot_failure="disk full") is None
    assert job.checkpoint(snapshot_failure="disk full") is None
    with pytest.raises(CheckpointFailedError, match="3 in a row"):
        job.checkpoint(snapshot_failure="disk full")


def test_job_that_failed_for_its_checkpoints_counts_anew(tmp_path):
    job = Job(tmp_path, tolerable_failures=1)
    for _ in range(2):
        job.checkpoint(snapshot_failure="disk full")
        with pytest.raises(CheckpointFailedError, match="2 in a row"):
            job.checkpoint(snapshot_failure="disk full")
        job.coordinator.reset()


def test_committables_of_a_failed_checkpoint_go_with_the_next(tmp_path):
    job = Job(tmp_path, tolerable_failures=5)
    assert job.checkpoint(committables={"sink": ["file 1"]}, snapshot_failure="disk full") is None
    assert job.checkpoint(committables={"sink": ["file 2"], "other": ["x"]}, snapshot_failure="disk full") is None
    expected = {"sink": ["file 1", "file 2", "file 3"], "other": ["x"]}
    assert job.checkpoint(committables={"sink": ["file 3"]}) == expected
    assert committed(job.on_disk()) == expected


def test_subtasks_hear_of_failed_checkpoints(tmp_path):
    job = Job(tmp_path, tolerable_failures=5)
    job.checkpoint(snapshot_failure="disk full")
    job.checkpoint()
    job.checkpoint(snapshot_failure="disk full")
    assert job.coordinator.aborted == [1, 3]


def test_snapshot_that_takes_too_long_fails_the_checkpoint(tmp_path):
    job = Job(tmp_path, timeout_ms=1000, tolerable_failures=1)
    assert job.checkpoint(snapshot_ms=1000) == {}
    assert job.checkpoint(snapshot_ms=1001) is None
    assert job.stats.latest_failed.failure_message == ("it expired: writing a snapshot took 1001 ms, more than 1000 ms")


def test_metadata_that_cannot_be_written_fails_the_checkpoint(tmp_path):
    job = Job(tmp_path, Fault("rename", at=2, path="*/_metadata"), tolerable_failures=1)
    job.checkpoint()
    assert job.checkpoint(committables={"sink": ["file"]}) is None
    assert job.stats.latest_failed.failure_message.startswith("its metadata could not be written: ")
    assert (job.coordinator.completed_id, job.on_disk().checkpoint_id) == (1, 1)
    assert job.checkpoint() == {"sink": ["file"]}
    assert job.on_disk().checkpoint_id == 3


def test_files_of_a_failed_checkpoint_count_with_the_next(tmp_path):
    job = Job(tmp_path, Fault("rename", path="*/_metadata"), tolerable_failures=1)
    job.checkpoint()
    job.coordinator.start(job.checkpoints.next_id(), Moment(0, 0))
    job.coordinator.acknowledged([TaskAck(vertex, 0, 2, None, OUTCOME, 0, 0) for vertex in (0, 1)])
    job.coordinator.complete_acknowledged({}, Moment(0, 0))
    assert [handle.epoch for handle in job.on_disk().handles()] == [1, 1]


def test_going_back_forgets_what_no_complete_checkpoint_has(tmp_path):
    job = Job(tmp_path, tolerable_failures=5)
    job.checkpoint()
    job.checkpoint(committables={"sink": ["file"]}, snapshot_failure="disk full")
    job.local.write("shared/v0-s0-e9", b"left by a subtask that was killed")
    job.coordinator.reset()
    job.checkpoints.store.drain()
    assert job.coordinator.aborted == []
    assert sorted(job.local.within("shared").names()) == ["v0-s0-e1", "v1-s0-e1"]
    assert job.checkpoint() == {}


def test_epoch_that_fails_fails_its_checkpoint(tmp_path):
    job = Job(tmp_path)
    job.coordinator.start(1, Moment(100, 100))
    job.coordinator.epoch_failed("a worker died", 200)
    stats = job.stats.latest_failed
    assert (stats.id, stats.failure_message, stats.failure_timestamp_ms) == (1, "a worker died", 200)
    job.coordinator.epoch_failed("again", 300)
    assert job.stats.counts()["failed"] == 1


# --- regions ---------------------------------------------------------------------------------------------------------


def test_checkpoint_of_a_region_has_the_others_as_they_were(tmp_path):
    job = Job(tmp_path, regions=2)
    job.checkpoint(0, position="a1", committables={"sink 0": [1]})
    job.checkpoint(1, position="b1", committables={"sink 1": [2]})
    job.checkpoint(0, position="a2")
    metadata = job.on_disk()
    assert [handle.epoch for handle in metadata.handles()] == [3, 3, 2, 2]
    assert {name: pickle.loads(at) for name, at in metadata.positions.items()} == {
        "position 0": "a2",
        "position 1": "b1",
    }
    assert committed(metadata) == {"sink 1": [2]}, "the other region commits it until its own next checkpoint"


def test_region_that_goes_back_leaves_the_others_alone(tmp_path):
    job = Job(tmp_path, regions=2)
    job.checkpoint(0)
    job.checkpoint(1)
    job.coordinators[0].reset()
    assert job.checkpoint(1) == {}
    assert [handle.epoch for handle in job.on_disk().handles()] == [1, 1, 3, 3]


def test_checkpoint_that_another_one_has_passed_is_the_newest_once_it_is_complete(tmp_path):
    """Nothing older is removed here, as if the process died right after it had committed."""
    job = Job(tmp_path, regions=2)
    job.checkpoints.store.discard = lambda unwanted: None
    job.checkpoint(0, position="a1")
    number = job.begin(0)
    job.checkpoint(1, position="b1")
    assert job.complete(0, number, position="a2", committables={"sink": ["file"]}) == {"sink": ["file"]}
    metadata = job.on_disk()
    assert (pickle.loads(metadata.positions["position 0"]), committed(metadata)) == ("a2", {"sink": ["file"]})
    assert job.coordinator.completed_id == number, "subtasks know the checkpoint by the number of their epoch"
    newest = job.stats.latest_completed
    assert (newest.id, newest.external_path) == (metadata.checkpoint_id, job.local.path_of("chk-4"))
    assert job.begin(1) == 5, "no number is used twice"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["complete", "fail", "go back"])), max_size=25), st.data())
def test_whenever_the_process_dies_the_newest_checkpoint_has_all_that_was_completed(tmp_path_factory, steps, data):
    """Regions begin and complete checkpoints in any order; what is to be removed may still be there, or be gone."""
    job = Job(tmp_path_factory.mktemp("job"), regions=3, tolerable_failures=1000)
    discard = job.checkpoints.store.discard
    job.checkpoints.store.discard = lambda unwanted: discard(unwanted) if data.draw(st.booleans()) else None
    begun: dict[int, int] = {}
    completed: dict[str, int] = {}
    for region, end in steps:
        if region not in begun:
            begun[region] = job.begin(region)
            continue
        number = begun.pop(region)
        if end == "go back":
            job.coordinators[region].epoch_failed("a worker died", 0)
            job.coordinators[region].reset()
        elif end == "fail":
            job.complete(region, number, snapshot_failure="disk full")
        else:
            job.complete(region, number, position=number)
            completed[f"position {region}"] = number
        job.checkpoints.store.drain()
        if completed:
            assert {name: pickle.loads(at) for name, at in job.on_disk().positions.items()} == completed


@pytest.mark.parametrize("refusing", [1, 2, 100])
def test_complete_checkpoint_counts_although_nothing_can_be_removed(tmp_path, monkeypatch, caplog, refusing):
    """The machine has no thread left for that: the region must not go back to the checkpoint before."""
    job = Job(tmp_path)
    job.checkpoint(position=1)
    left = [refusing]
    start = threading.Thread.start

    def start_or_refuse(thread):
        if thread.name.startswith("removal") and left[0]:
            left[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)
    assert job.checkpoint(position=2, committables={"sink": ["file"]}) == {"sink": ["file"]}
    assert job.coordinator.completed_id == 2
    assert "chk-1 is no longer needed but cannot be removed: can't start new thread" in caplog.text
    job.checkpoint(position=3)
    job.checkpoints.store.close()
    assert job.on_disk().checkpoint_id == 3


def test_checkpoint_is_newer_than_one_that_failed_but_may_be_on_disk(tmp_path):
    """The storage writes a checkpoint without confirming it, and then does not remove it either."""
    faults = (Fault("rename", path="*/chk-3/_metadata", action="lose-answer"), Fault("delete", path="*/chk-3"))
    job = Job(tmp_path, *faults, regions=2, tolerable_failures=1)
    job.checkpoint(0, position="a1")
    number = job.begin(0)
    assert job.checkpoint(1, position="b1") is None
    assert job.complete(0, number, position="a2", committables={"sink": ["file"]}) == {"sink": ["file"]}
    metadata = job.on_disk()
    assert (pickle.loads(metadata.positions["position 0"]), committed(metadata)) == ("a2", {"sink": ["file"]})


storage_faults = st.builds(
    Fault,
    st.sampled_from(["create", "rename", "delete", "list"]),
    at=st.integers(1, 8),
    times=st.integers(1, 3),
    path=st.sampled_from(["*/_metadata", "*chk-*", "*shared*"]),
    action=st.sampled_from(["fail", "lose-answer"]),
)
ends = st.sampled_from(["complete", "complete", "fail", "go back"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), ends), max_size=30), st.lists(storage_faults, max_size=4), st.data())
def test_no_fault_of_the_storage_brings_back_what_is_over(tmp_path_factory, steps, faults, data):
    """A region is found where it completed a checkpoint last, or further on if that one failed and may be on disk."""
    job = Job(tmp_path_factory.mktemp("job"), *faults, regions=3, tolerable_failures=1000)
    discard = job.checkpoints.store.discard
    job.checkpoints.store.discard = lambda unwanted: discard(unwanted) if data.draw(st.booleans()) else None
    begun: dict[int, int] = {}
    completed: dict[int, int | None] = dict.fromkeys(range(3))
    doubtful: dict[int, set[int]] = {region: set() for region in range(3)}
    for region, end in steps:
        if region not in begun:
            begun[region] = job.begin(region)
            continue
        number = begun.pop(region)
        if end == "go back":
            job.coordinators[region].epoch_failed("a worker died", 0)
            reset_at_last(job.coordinators[region])
            doubtful[region].clear()
        elif end == "fail":
            job.complete(region, number, snapshot_failure="disk full")
        elif job.complete(region, number, position=number) is None:
            doubtful[region].add(number)
        else:
            completed[region] = number
            doubtful[region].clear()
        job.checkpoints.store.drain()
        if any(completed.values()):
            found = job.on_disk().positions
            for each in range(3):
                position = found.get(f"position {each}")
                at = None if position is None else pickle.loads(position)
                assert at in {completed[each], *doubtful[each]}


def reset_at_last(coordinator):
    """As a region does that is restarted again and again."""
    for _ in range(20):
        try:
            coordinator.reset()
            return
        except OSError:
            continue
    raise AssertionError("the storage never comes back")


def test_restored_job_has_no_checkpoint_before_all_regions_have_one(tmp_path):
    before = Job(tmp_path / "before", regions=2)
    before.checkpoint(0)
    before.checkpoint(1)
    job = Job(tmp_path / "after", regions=2, restored=find_checkpoint(before.local.uri))
    assert job.coordinators[0].completed_id == 2
    job.checkpoint(0)
    assert not job.checkpoints.is_whole and job.checkpoints.latest is None
    assert [name for name in job.local.names() if name.startswith("chk")] == []
    job.checkpoint(1)
    assert job.checkpoints.is_whole
    assert [handle.epoch for handle in job.on_disk().handles()] == [3, 3, 4, 4]
