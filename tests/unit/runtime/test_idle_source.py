"""A source that falls idle between two inputs."""

from __future__ import annotations

from penstock.common import Configuration, Duration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.runtime.chunk import Status, read_chunk
from penstock.runtime.protocol import JobDeployment
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.saved_state import FileChain, StateHandle
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.runtime.stream_task import StreamTask
from penstock.testing import MemoryFolder


class Clock:
    now = 1000

    def __call__(self) -> int:
        return self.now


def source_task(clock: Clock) -> StreamTask:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    stream = env.from_collection([1]).assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_millis(10)))
    stream.key_by(lambda number: number).sum().print()
    graph = build_job_graph(env.get_stream_graph())
    return StreamTask(JobDeployment("0" * 32, graph), 0, 0, clock)


def saved(task: StreamTask, folder: MemoryFolder, epoch: int, extent: Extent) -> list[StateHandle]:
    if task.prepare_snapshot(epoch, extent) is None:
        return []
    with folder.create(str(epoch)) as out:
        writer = StateFileWriter(out)
        task.write_snapshot(writer, extent)
        writer.finish()
    task.snapshot_written(extent)
    return [StateHandle(str(epoch), epoch, writer.size, extent)]


def test_a_restored_source_is_active_until_it_was_quiet_again_for_the_whole_timeout() -> None:
    clock, folder = Clock(), MemoryFolder()
    task = source_task(clock)
    task.open()
    first = Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment([1], is_last=False).encode())
    list(task.run_epoch([first]))
    handles = saved(task, folder, 1, Extent.ALL)
    sent: list[object] = []
    for epoch in (2, 3, 4):
        clock.now += 1000
        sent += [event for row in task.run_epoch([]) for event in read_chunk(row.chunk)]
        handles += saved(task, folder, epoch, Extent.CHANGES)
    assert Status(is_idle=True) in sent

    clock.now += 1_000_000  # The job was down.
    restored = source_task(clock)
    restored.restore([FileChain(folder, tuple(handles), 0)], 4, is_exact=True)
    restored.open()
    statuses: list[list[object]] = []
    for _ in range(3):
        rows = restored.run_epoch([])
        sent = [event for row in rows for event in read_chunk(row.chunk)]
        statuses.append([event for event in sent if isinstance(event, Status)])
        clock.now += 6
    assert statuses == [[], [], []]  # The first call ends the restart, the second starts the count.
    rows = restored.run_epoch([])
    assert Status(is_idle=True) in [event for row in rows for event in read_chunk(row.chunk)]
