"""One source in a job that can fail at any point: its coordinator, its subtasks, and checkpoints."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from penstock.common import Configuration
from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import SourceFunction
from penstock.jobmaster.sources.source_coordinator import build_source_coordinator
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.runtime.sources import build_source_operator
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.operator import share_of
from penstock.testing.harness import RecordingOutput

PATIENCE_S = 20


@dataclass(frozen=True)
class Checkpoint:
    number: int
    position: bytes
    states: tuple[bytes, ...]


class Subtask:
    """The source's operator in one subtask, and what it has emitted."""

    def __init__(self, description, number, parallelism, clock, saved=None, memory=None):
        task = TaskInfo("0" * 32, "job", "source", number, parallelism, 128)
        self.context = OperatorContext(task, "source", "source", clock)
        self.output = RecordingOutput()
        self.operator = build_source_operator(description)
        self.operator.setup(self.context, self.output)
        self.is_finished = False
        if saved is not None:
            self.context.operator_state.restore(saved)
        if memory is not None:
            self.operator.current_watermark, task_memory = memory
            self.operator.restore_task_memory(task_memory)
        self.operator.open()

    def run(self, assignment):
        for batch in self.operator.read(assignment.payload):
            self.output.collect_batch(batch.values, batch.timestamps)
        if assignment.is_last:
            self.operator.end_reading()
            self.output.emit_watermark(MAX_LONG_VALUE)
            self.operator.finish()
            self.is_finished = True

    def snapshot(self, number):
        if not self.is_finished:
            self.operator.snapshot_state(number)
        memory = self.operator.current_watermark, self.operator.task_memory()
        return encode_state((self.context.operator_state.snapshot(), memory))


class SourceJob:
    """Runs a source in epochs. `shown` is what a sink that commits with checkpoints would show."""

    def __init__(self, source, parallelism=1, strategy=None, settings=None):
        self._source = source
        self._strategy = strategy or WatermarkStrategy.no_watermarks()
        self._settings = settings or {}
        self._temporary = tempfile.TemporaryDirectory(prefix="penstock-source-test-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._woken = threading.Event()
        self._runs = 0
        self.now_ms = 0
        self.shown = []
        self.last = None
        self.number = 0
        self._start(parallelism, None, True)

    def _start(self, parallelism, checkpoint, is_exact):
        self._runs += 1
        self.parallelism = parallelism
        env = StreamExecutionEnvironment.get_execution_environment(Configuration())
        env.set_parallelism(parallelism)
        if isinstance(self._source, SourceFunction):
            stream = env.add_source(self._source)
        else:
            stream = env.from_source(self._source, self._strategy, "source")
        self._description = stream.transformation.operator
        setup = SourceSetup(
            vertex=0,
            operator_id="source",
            name="Source: the source",
            parallelism=parallelism,
            max_parallelism=128,
            folder=self._folder / str(self._runs),
            storage=str(self._folder / "storage"),
            on_change=self._woken.set,
            job_name="the job",
            config=Configuration.from_dict(self._settings),
        )
        self.coordinator = build_source_coordinator(self._description, setup)
        if checkpoint is not None:
            self.coordinator.restore(decode_state(checkpoint.position), is_exact)
        self.coordinator.start()
        self._origin = checkpoint, is_exact, self.coordinator.position
        self.last = None
        self._open(checkpoint, is_exact)

    def _open(self, checkpoint, is_exact):
        former = [] if checkpoint is None else [decode_state(each) for each in checkpoint.states]

        def restored(number):
            if is_exact:
                return former[number] if former else (None, None)
            return share_of([saved for saved, _ in former], number, self.parallelism), None

        self.subtasks = [
            Subtask(self._description, number, self.parallelism, lambda: self.now_ms, *restored(number))
            for number in range(self.parallelism)
        ]
        self.unseen = []
        self.wake_up_ms = None

    # --- what happens ----------------------------------------------------------------------------------------------

    def epoch(self, is_checkpoint=True):
        self.coordinator.check()
        self.number += 1
        self._woken.clear()
        self._run(self.coordinator.plan(self.number, is_checkpoint))
        if is_checkpoint or self.coordinator.is_exhausted:
            self.checkpoint()
        return self

    def _run(self, planned):
        reports = {}
        for number, assignment in planned.items():
            subtask = self.subtasks[number]
            before = len(subtask.output.records)
            subtask.run(assignment)
            self.unseen += subtask.output.records[before:]
            report = subtask.operator.take_report()
            if report is not None:
                reports[number] = report
        for subtask in self.subtasks:
            if not subtask.is_finished:
                subtask.operator.end_epoch()
        self.coordinator.epoch_complete(reports, 1)
        times = [each.operator.next_processing_time() for each in self.subtasks if not each.is_finished]
        self.wake_up_ms = min((time for time in times if time is not None), default=None)

    def checkpoint(self):
        states = tuple(subtask.snapshot(self.number) for subtask in self.subtasks)
        position = self.coordinator.position
        self.last = Checkpoint(self.number, encode_state(position), states)
        self.shown += self.unseen
        self.unseen = []
        self.coordinator.checkpoint_complete(position)
        for subtask in self.subtasks:
            subtask.operator.notify_checkpoint_complete(self.number)

    def stop_with_savepoint(self):
        self.number += 1
        self._run(self.coordinator.suspend(self.number))
        self.checkpoint()
        self.coordinator.stop()

    def fail(self):
        """A task fails: the job goes back to its last checkpoint, in the same process."""
        self._close()
        checkpoint, is_exact, position = self._origin
        if self.last is not None:
            checkpoint, is_exact, position = self.last, True, decode_state(self.last.position)
        self.coordinator.rewind(position)
        self._open(checkpoint, is_exact)
        for number in self._ended():
            self.subtasks[number].is_finished = True
        return self

    def rebuild(self):
        """All is well, but the subtasks continue in other processes."""
        wake_up_ms = self.wake_up_ms  # The job knows it from the last epoch.
        self._close()
        self._open(self.last, True)
        self.wake_up_ms = wake_up_ms
        return self

    def crash(self, parallelism=None, meanwhile=None):
        """The driver is gone: a new process begins from the last checkpoint, perhaps with another parallelism.

        `meanwhile` is called in between, when nothing of the source runs.
        """
        self._close()
        self.coordinator.stop()
        if meanwhile is not None:
            meanwhile()
        checkpoint = self.last or self._origin[0]
        parallelism = parallelism or self.parallelism
        self._start(parallelism, checkpoint, checkpoint is None or parallelism == len(checkpoint.states))
        for number in self._ended():
            self.subtasks[number].is_finished = True
        return self

    def _ended(self):
        return getattr(self.coordinator.position, "ended", ())

    def to_the_end(self, is_checkpoint=True):
        """Epochs while there is something to do, until the source has ended."""
        while not self.coordinator.is_exhausted:
            self.wait_for_work()
            self.epoch(is_checkpoint)
        self.close()
        return self

    def wait_for_work(self):
        self.coordinator.check()
        if not self.has_work():
            assert self._woken.wait(PATIENCE_S), "nothing happens any more"

    def has_work(self):
        """True if the job would run an epoch now."""
        is_due = self.wake_up_ms is not None and self.wake_up_ms <= self.now_ms
        return is_due or self.coordinator.has_work()

    def _close(self):
        for subtask in self.subtasks:
            subtask.operator.close()

    def close(self):
        self._close()
        self.coordinator.stop()

    # --- what came out ---------------------------------------------------------------------------------------------

    @property
    def values(self):
        return [value for value, _ in self.shown]

    @property
    def watermarks(self):
        return [subtask.output.watermarks for subtask in self.subtasks]
