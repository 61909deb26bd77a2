"""A job whose leader is replaced at some moment, in one process: what it has shown is whole and comes once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.checkpoint.folders import LocalFolder
from penstock.cluster.high_availability.fence import Fence
from penstock.cluster.high_availability.job_records import FencedJob, JobRecord
from penstock.cluster.high_availability.job_store import JobStore
from penstock.common import Configuration, JobID, JobStatus
from penstock.common.exceptions import LeadershipLostError, UserFunctionError
from penstock.common.serialization import Encoder
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.job_submission import JobSubmission, ShippedDependencies

JOB = JobID("0123456789abcdef" * 2)
SUBMISSION = JobSubmission("ab" * 32, {}, ShippedDependencies(), False, False)
NUMBERS = list(range(24))
SETTINGS = {
    "execution.checkpointing.interval": "1 ms",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "2",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


def put_up_fence(folder: str, token: int) -> None:
    Fence(LocalFolder(folder).within("fence"), token).put_up()


@dataclass(frozen=True)
class Once:
    """Passes numbers on; does something when it first sees one of them."""

    mark: Path
    number: int
    action: Callable[[], None]

    def __call__(self, number: int) -> int:
        if number == self.number and not self.mark.exists():
            self.mark.touch()
            self.action()
        return number


@dataclass(frozen=True)
class Places:
    """Where a job and its leaders have their files."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints" / str(JOB)

    @property
    def jobs(self) -> LocalFolder:
        return LocalFolder(str(self.folder)).within("jobs")

    def fence(self, token: int) -> Fence:
        fence = Fence(LocalFolder(str(self.folder)).within("fence"), token)
        fence.put_up()
        return fence

    def store(self, token: int) -> JobStore:
        return JobStore(self.jobs, self.fence(token))

    def shown(self) -> list[int]:
        files = [path for path in self.out.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(int(line) for path in files for line in path.read_text().split())

    def first(
        self, graph: JobGraph, settings: dict[str, str] | None = None, kind: type[FencedJob] = FencedJob
    ) -> JobMaster:
        fence = self.fence(1)
        leadership = kind(self.jobs.within(str(JOB)), fence, JobRecord())
        JobStore(self.jobs, fence).put(str(JOB), leadership, SUBMISSION, lambda blob: b"")
        return self._master(graph, leadership, settings or {})

    def next(self, graph: JobGraph, token: int) -> JobMaster:
        """The job at the next leader."""
        return self._master(graph, self.store(token).adopt(str(JOB)).leadership, {})

    def _master(self, graph: JobGraph, leadership, settings: dict[str, str]) -> JobMaster:
        folders = {"execution.checkpointing.dir": str(self.folder / "checkpoints")}
        config = Configuration.from_dict({**SETTINGS, **folders, **settings})
        return JobMaster(JOB, graph, config, InlineExecutor(), leadership=leadership)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def counting_job(places: Places, *functions: Once, mode: RuntimeExecutionMode | None = None) -> JobGraph:
    """Sums up numbers by key and writes each sum, in batch mode only the last; the sums are in keyed state."""
    env = StreamExecutionEnvironment.get_execution_environment()
    if mode is not None:
        env.set_runtime_mode(mode)
    stream = env.from_collection(NUMBERS)
    for function in functions:
        stream = stream.map(function)
    sums = stream.key_by(lambda number: number % 2).reduce(lambda a, b: a + b)
    builder = FileSink.for_row_format(str(places.out), Encoder.simple_string_encoder())
    sums.sink_to(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    return build_job_graph(env.get_stream_graph(job_name="counting"))


def sums() -> list[int]:
    return sorted(sum(each for each in NUMBERS if each <= number and each % 2 == number % 2) for number in NUMBERS)


def expected(mode: RuntimeExecutionMode) -> list[int]:
    return sums()[-2:] if mode is RuntimeExecutionMode.BATCH else sums()


@pytest.mark.parametrize("number", NUMBERS)
def test_results_are_whole_and_come_once_wherever_another_leader_takes_over(places, number):
    takes_over = Once(places.folder / "mark", number, lambda: put_up_fence(str(places.folder), 2))
    graph = counting_job(places, takes_over)
    first = places.first(graph)
    first.run()
    assert first.status is JobStatus.SUSPENDED
    assert len(places.shown()) < len(NUMBERS)
    second = places.next(graph, 3)
    second.run()
    assert second.status is JobStatus.FINISHED
    assert places.shown() == sums()
    assert not places.checkpoints.exists()


def test_suspended_job_has_removed_nothing_and_commits_nothing(places):
    takes_over = Once(places.folder / "mark", 10, lambda: put_up_fence(str(places.folder), 2))
    first = places.first(counting_job(places, takes_over))
    first.run()
    before = places.shown()
    (record,) = (places.folder / "jobs" / str(JOB)).glob("record-*1")
    checkpoint = places.store(3).adopt(str(JOB)).leadership.checkpoint
    assert (Path(checkpoint) / "_metadata").is_file() and record.name.endswith("1")
    assert places.shown() == before


def test_job_continues_with_its_own_checkpoints_and_larger_ids(places):
    takes_over = Once(places.folder / "mark", 10, lambda: put_up_fence(str(places.folder), 2))
    graph = counting_job(places, takes_over)
    places.first(graph).run()
    second = places.next(graph, 3)
    restored_id = second.restored.found.metadata.checkpoint_id
    second.run()
    ids = [stats.id for stats in second.checkpoints.history()]
    assert second.checkpoints.restored.id == restored_id and min(ids) > restored_id
    assert second.checkpoints.counts()["failed"] == 0


@dataclass(frozen=True)
class FailsAtNextLeader:
    """Fails once at a number, when another leader has taken over."""

    folder: Path
    number: int

    def __call__(self, number: int) -> int:
        mark = self.folder / "has-failed"
        if number == self.number and (self.folder / "mark").exists() and not mark.exists():
            mark.touch()
            raise RuntimeError("not at the next leader either")
        return number


@pytest.mark.parametrize("number", [12, 13, 14, 20])
def test_next_leader_restarts_the_job_from_what_it_went_on_from(places, number):
    takes_over = Once(places.folder / "mark", 11, lambda: put_up_fence(str(places.folder), 2))
    graph = counting_job(places, FailsAtNextLeader(places.folder, number), takes_over)
    places.first(graph).run()
    second = places.next(graph, 3)
    second.run()
    assert second.restarts == 1 and places.shown() == sums()


def test_leader_that_fails_after_it_was_replaced_does_not_remove_what_its_successor_wrote(places):
    """Going back to its checkpoint it would take the other's files for leftovers of its own."""

    def replaced_and_failing() -> None:
        put_up_fence(str(places.folder), 2)
        (shared / "v1-s0-e1001-written-by-the-next-leader").write_bytes(b"state")
        raise RuntimeError("the connection was lost while the process slept")

    shared = places.checkpoints / "shared"
    first = places.first(counting_job(places, Once(places.folder / "mark", 10, replaced_and_failing)))
    first.run()
    assert first.status is JobStatus.SUSPENDED
    assert (shared / "v1-s0-e1001-written-by-the-next-leader").exists()


def test_leader_that_was_replaced_does_not_decide_that_the_job_has_failed(places):
    def failing() -> None:
        put_up_fence(str(places.folder), 2)
        raise RuntimeError("never again")

    graph = counting_job(places, Once(places.folder / "mark", 10, failing))
    first = places.first(graph, {"restart-strategy.type": "none"})
    with pytest.raises(UserFunctionError, match="never again"):
        first.run()
    assert first.status is JobStatus.SUSPENDED
    places.next(graph, 3).run()
    assert places.shown() == sums()


def test_job_that_was_told_to_stop_by_its_process_is_suspended(places):
    class Running:
        master: JobMaster

    ends = LeadershipLostError("the process ends")
    graph = counting_job(places, Once(places.folder / "mark", 10, lambda: Running.master.suspend(ends)))
    Running.master = places.first(graph)
    Running.master.run()
    assert Running.master.status is JobStatus.SUSPENDED
    Running.master.cancel()
    assert Running.master.status is JobStatus.SUSPENDED  # Nothing runs here that could end a cancellation.
    places.next(graph, 2).run()
    assert places.shown() == sums()


def test_job_without_a_checkpoint_starts_anew(places):
    takes_over = Once(places.folder / "mark", 0, lambda: put_up_fence(str(places.folder), 2))
    graph = counting_job(places, takes_over)
    places.first(graph).run()
    second = places.next(graph, 3)
    assert second.restored is None
    second.run()
    assert places.shown() == sums()


class ReplacedAtItsEnd(FencedJob):
    """Another leader takes over when everything is done but for noting that."""

    def end(self, status: str, unwanted: str | None) -> None:
        put_up_fence(str(self._folder.within("../..").path), 2)
        super().end(status, unwanted)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_job_whose_end_was_not_noted_is_ended_by_the_next_leader(places, mode):
    graph = counting_job(places, mode=mode)
    first = places.first(graph, kind=ReplacedAtItsEnd)
    first.run()
    assert first.status is JobStatus.SUSPENDED and places.shown() == expected(mode)
    second = places.next(graph, 3)
    second.run()
    assert second.status is JobStatus.FINISHED and places.shown() == expected(mode)
    assert places.store(4).adopt(str(JOB)) is None


def test_finished_job_is_not_run_again(places):
    places.first(counting_job(places)).run()
    assert places.store(2).adopt(str(JOB)) is None


def test_regions_continue_each_from_its_own_part_of_the_checkpoint(places):
    env = StreamExecutionEnvironment.get_execution_environment()
    takes_over = Once(places.folder / "mark", 10, lambda: put_up_fence(str(places.folder), 2))
    for offset, function in ((0, takes_over), (1000, Once(places.folder / "other", -1, lambda: None))):
        builder = FileSink.for_row_format(str(places.out), Encoder.simple_string_encoder())
        sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
        env.from_collection([offset + number for number in NUMBERS]).map(function).sink_to(sink)
    graph = build_job_graph(env.get_stream_graph(job_name="two regions"))
    first = places.first(graph)
    first.run()
    assert first.status is JobStatus.SUSPENDED
    places.next(graph, 3).run()
    assert places.shown() == [offset + number for offset in (0, 1000) for number in NUMBERS]
