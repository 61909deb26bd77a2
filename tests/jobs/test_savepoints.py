"""Savepoints of running jobs: asked for while they run, or to stop them; and jobs that continue from them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import folder_at
from penstock.common import Configuration, JobID, JobStatus, Time, WatermarkStrategy
from penstock.common.exceptions import CheckpointError
from penstock.common.serialization import Encoder
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.testing import Fault, FaultPlan, FaultyFolder

PATIENCE_S = 60
EPOCHS = {"penstock.epoch.interval": "1 ms", "penstock.epoch.max-records": "5"}
FORMATS = ["canonical", "native"]
ENDLESS = 10**9


def wait_until(is_so: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.01)
    return found


class Count(KeyedProcessFunction):
    """Gives every element its number among those of its key."""

    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self._count.update((self._count.value() or 0) + 1)
        yield f"{ctx.get_current_key()} {self._count.value()} {value}"


def files(folder: Path) -> FileSink:
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()


def lines_in(folder: Path) -> list[str]:
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return [line for path in found for line in path.read_text().splitlines()]


def counting(env: StreamExecutionEnvironment, out: Path) -> None:
    """From one number after the other: key, count, number."""
    numbers = env.from_sequence(0, ENDLESS).uid("numbers").set_parallelism(1)
    numbers.key_by(lambda value: value % 3).process(Count()).uid("count").sink_to(files(out)).uid("sink")


def assert_nothing_lost_or_doubled(lines: list[str]) -> int:
    """All numbers from 0 on, each once, counted by key; how many there are."""
    rows = sorted(tuple(map(int, line.split())) for line in lines)
    assert rows == sorted((number % 3, number // 3 + 1, number) for number in range(len(rows)))
    return len(rows)


def wait_for_records(master: JobMaster, number: int = 20) -> None:
    """Until the job has read some since it was started."""
    vertices = list(master.execution_graph.vertices())
    wait_until(lambda: sum(each.current.facts.records_in for each in vertices) >= number)


# --- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format_type", "parallelism"), [("canonical", 3), ("native", 2)])
def test_stopped_job_continues_exactly_where_it_stood(run_target, tmp_path, format_type, parallelism):
    counts, recovery = [], {}
    for width in (2, parallelism, 2):
        env = run_target(width, EPOCHS | recovery)
        counting(env, tmp_path / "out")
        job = env.execute_async()
        wait_for_records(job.master)
        path = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), False, format_type).result(PATIENCE_S)
        job.get_job_execution_result().result()
        assert job.get_job_status().result() is JobStatus.FINISHED
        counts.append(assert_nothing_lost_or_doubled(lines_in(tmp_path / "out")))
        recovery = {"execution.state-recovery.path": path}
    assert 0 < counts[0] < counts[1] < counts[2]


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


@pytest.mark.parametrize("drain", [True, False])
def test_only_a_drained_job_fires_what_waits_for_the_end_of_time(run_target, tmp_path, drain):
    env = run_target(2, EPOCHS)
    time_of_numbers = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    numbers = env.from_sequence(0, ENDLESS).assign_timestamps_and_watermarks(time_of_numbers)
    windows = numbers.key_by(lambda value: value % 3).window(TumblingEventTimeWindows.of(Time.days(1000)))
    windows.reduce(lambda a, b: a).sink_to(files(tmp_path / "out"))
    job = env.execute_async()
    wait_for_records(job.master)
    path = job.stop_with_savepoint(drain, str(tmp_path / "savepoints")).result()
    job.get_job_execution_result().result()
    assert len(lines_in(tmp_path / "out")) == (3 * 1 if drain else 0)
    sizes = [handle for handle in find_checkpoint(path).metadata.handles() if handle.name.startswith("state/")]
    has_windows = any(kind == "keyed" for handle in sizes for _, kind, _ in handle.states)
    assert has_windows is not drain


# --- while the job runs on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_type", FORMATS)
def test_job_continues_while_a_savepoint_is_taken(run_target, tmp_path, format_type):
    env = run_target(2, EPOCHS)
    counting(env, tmp_path / "first")
    job = env.execute_async()
    wait_for_records(job.master)
    path = job.master.trigger_savepoint(str(tmp_path / "savepoints"), format_type).result(PATIENCE_S)
    wait_for_records(job.master, 10 + sum(v.current.facts.records_in for v in job.master.execution_graph.vertices()))
    stats = job.master.checkpoints.latest_savepoint
    assert (stats.status, stats.savepoint_format) == ("COMPLETED", format_type)
    assert job.master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S) != path
    everything = assert_nothing_lost_or_doubled(lines_in(tmp_path / "first"))

    env = run_target(1, EPOCHS | {"execution.state-recovery.path": path})
    counting(env, tmp_path / "second")
    job = env.execute_async()
    wait_for_records(job.master)
    job.master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
    numbers = sorted(int(line.split()[2]) for line in lines_in(tmp_path / "second"))
    assert 0 < numbers[0] < everything and numbers == list(range(numbers[0], numbers[-1] + 1))
    assert all(int(count) == int(number) // 3 + 1 for _, count, number in map(str.split, lines_in(tmp_path / "second")))


# --- when it cannot be ---------------------------------------------------------------------------------------------


class CopiesFail(InlineExecutor):
    """Cannot write the files of a savepoint at first."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self._failures = failures

    def run_copies(self, copies):
        self._failures -= 1
        if self._failures >= 0:
            raise OSError("disk full")
        return super().run_copies(copies)


@contextlib.contextmanager
def running(tmp_path: Path, *faults: Fault, executor: InlineExecutor | None = None, **more: str) -> Iterator[JobMaster]:
    """The counting job in a thread of this process; cancelled in the end, unless it has stopped."""
    env = StreamExecutionEnvironment.get_execution_environment()
    counting(env, tmp_path / "out")
    settings = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")} | EPOCHS | more
    plan = FaultPlan(str(tmp_path / "notes"), faults)
    master = JobMaster(
        JobID.generate(),
        build_job_graph(env.get_stream_graph(job_name="counting")),
        Configuration.from_dict(settings),
        executor or InlineExecutor(),
        lambda uri: FaultyFolder(folder_at(uri), plan),
    )
    thread = threading.Thread(target=master.run, daemon=True)
    thread.start()
    try:
        wait_for_records(master)
        yield master
    finally:
        master.cancel()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("drain", [False, True])
def test_savepoint_that_cannot_be_written_is_reported(tmp_path, drain):
    with running(tmp_path, executor=CopiesFail(1)) as master:
        answer = master.stop_with_savepoint(str(tmp_path / "savepoints"), drain)
        with pytest.raises(CheckpointError, match=r"the savepoint in .* was not written: OSError: disk full"):
            answer.result(PATIENCE_S)


def test_job_whose_savepoint_fails_does_not_stop(tmp_path):
    """Its checkpoints would go with it, and nothing would be left of its state."""
    with running(tmp_path, executor=CopiesFail(2)) as master:
        for _ in range(2):
            with pytest.raises(CheckpointError, match="disk full"):
                master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        assert not master.status.is_terminal_state()
        path = master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        wait_until(lambda: master.status.is_terminal_state())
    assert master.status is JobStatus.FINISHED
    assert_nothing_lost_or_doubled(lines_in(tmp_path / "out"))
    assert find_checkpoint(path).metadata.is_savepoint


def test_job_does_not_stop_when_its_checkpoint_fails(tmp_path):
    tolerant = {"execution.checkpointing.tolerable-failed-checkpoints": "3"}
    with running(tmp_path, Fault("rename", path="*/_metadata"), **tolerant) as master:
        with pytest.raises(CheckpointError, match=r"was not written: checkpoint \d+ failed; the job continues"):
            master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        wait_until(lambda: master.status.is_terminal_state())
    assert master.status is JobStatus.FINISHED
    assert_nothing_lost_or_doubled(lines_in(tmp_path / "out"))


def test_request_is_answered_when_the_job_is_cancelled(tmp_path):
    class Hangs(InlineExecutor):
        """Does not finish the files of a savepoint until it is told to."""

        is_free = threading.Event()

        def run_copies(self, copies):
            self.is_free.wait(PATIENCE_S)
            return super().run_copies(copies)

    executor = Hangs()
    with running(tmp_path, executor=executor) as master:
        answer = master.stop_with_savepoint(str(tmp_path / "savepoints"), False)
        wait_until(lambda: master.checkpoints.latest_savepoint)
        master.cancel()
        executor.is_free.set()
        wait_until(lambda: master.status.is_terminal_state())
    assert master.status is JobStatus.CANCELED
    assert find_checkpoint(answer.result(PATIENCE_S)).metadata.is_savepoint


def test_what_cannot_be_is_refused_at_once(tmp_path):
    with running(tmp_path) as master:
        with pytest.raises(CheckpointError, match="there is no directory for the savepoint; name one, or configure"):
            master.trigger_savepoint(None)
        with pytest.raises(CheckpointError, match="savepoint format 'xml' is not known"):
            master.trigger_savepoint(str(tmp_path), "xml")
    with pytest.raises(CheckpointError, match="is CANCELED and no longer takes savepoints"):
        master.trigger_savepoint(str(tmp_path))


def test_batch_job_has_no_savepoints(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1]).print()
    graph = build_job_graph(env.get_stream_graph())
    master = JobMaster(JobID.generate(), graph, Configuration.from_dict({}), InlineExecutor())
    with pytest.raises(CheckpointError, match="runs in batch mode, which has no checkpoints and no savepoints"):
        master.trigger_savepoint(str(tmp_path))


def test_directory_of_the_configuration_is_used(tmp_path):
    place = {"execution.checkpointing.savepoint-dir": str(tmp_path / "configured")}
    with running(tmp_path, **place) as master:
        path = master.trigger_savepoint(None).result(PATIENCE_S)
    assert Path(path.removeprefix("file://")).parent == tmp_path / "configured"
