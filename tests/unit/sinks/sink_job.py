"""One sink in a job that can fail at any point: a source that can be read again, subtasks, and checkpoints."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import SinkFunction
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.sinks.sink_commits import SinkCommits
from penstock.runtime.batch import Batch
from penstock.runtime.operators import build_operator
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.runtime.state.operator import share_of
from penstock.testing.harness import RecordingOutput

CHECKPOINT_STEPS = ("snapshot", "metadata", "commit", "notify")


@dataclass(frozen=True)
class Checkpoint:
    number: int
    position: int
    states: tuple[bytes, ...]
    committables: bytes


def visible_files(folder):
    """Contents by path: what a reader of the folder sees, who passes over hidden files."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def hidden_files(folder):
    return sorted(path.name for path in Path(folder).rglob(".*") if path.is_file())


class SinkJob:
    """The elements are `element_of(0)`, `element_of(1)` and so on; after a failure they come again.

    `folder` is where the sink writes: a crash leaves there what was on the disk at that moment.
    """

    def __init__(self, sink, folder, element_of=str, parallelism=1, takes_checkpoints=True):
        self._takes_checkpoints = takes_checkpoints
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_collection([]).set_parallelism(1)
        (stream.add_sink if isinstance(sink, SinkFunction) else stream.sink_to)(sink)
        graph = build_job_graph(env.get_stream_graph())
        self._node = next(node for vertex in graph.vertices for node in vertex.nodes if node.is_sink)
        self._graph = graph
        self._folder = Path(folder)
        self._element_of = element_of
        self.commits = SinkCommits(graph)
        self.now_ms = 0
        self.position = 0
        self.last: Checkpoint | None = None
        self._next_number = 1
        self._prepared = []
        self._start(parallelism)

    # --- running -----------------------------------------------------------------------------------------------------

    def write(self, count=1):
        for _ in range(count):
            operator = self.operators[self.position % len(self.operators)]
            operator.process_batch(Batch([self._element_of(self.position)], [self.position]))
            self.position += 1
        return self

    def processing_time(self, now_ms):
        self.now_ms = now_ms
        for operator in self.operators:
            operator.advance_processing_time(now_ms)
        return self

    def end(self):
        """The end of the input, with the last checkpoint of the job."""
        for operator in self.operators:
            operator.finish()
        self.checkpoint()
        self.close()

    def close(self):
        for operator in self.operators:
            operator.close()
        self.commits.close()

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def checkpoint(self, last_step="notify"):
        """Take a checkpoint, up to and with `last_step`; after a step but the last one, only a restart makes sense."""
        done = CHECKPOINT_STEPS[: CHECKPOINT_STEPS.index(last_step) + 1]
        taken = self._snapshot()
        if "metadata" in done:
            self.last, self._prepared = taken, []
        if "commit" in done:
            self.commits.commit(pickle.loads(taken.committables))
        if "notify" in done:
            for operator in self.operators:
                operator.notify_checkpoint_complete(taken.number)
        return self

    def aborted_checkpoint(self):
        """A checkpoint that fails although all subtasks have done their part; the job continues."""
        taken = self._snapshot()
        for operator in self.operators:
            operator.notify_checkpoint_aborted(taken.number)
        return self

    def _snapshot(self):
        number, self._next_number = self._next_number, self._next_number + 1
        # What was prepared for a checkpoint that failed goes with the next one.
        self._prepared += [each for operator in self.operators for each in operator.prepare_commit(number)]
        for operator in self.operators:
            operator.snapshot_state(number)
        states = tuple(pickle.dumps(each.context.operator_state.snapshot()) for each in self.operators)
        return Checkpoint(number, self.position, states, pickle.dumps({self._node.operator_id: self._prepared}))

    # --- failures ----------------------------------------------------------------------------------------------------

    def fail(self, parallelism=None):
        """Something raises: tasks are closed, and the job continues from the last checkpoint."""
        for operator in self.operators:
            operator.close()
        return self._restart(parallelism)

    def crash(self, parallelism=None):
        """The processes are killed: nothing is closed, and what was in memory is lost."""
        image = {path: path.read_bytes() for path in self._folder.rglob("*") if path.is_file()}
        for operator in self.operators:
            operator.close()
        shutil.rmtree(self._folder)
        self._folder.mkdir()
        for path, content in image.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.commits = SinkCommits(self._graph)
        return self._restart(parallelism)

    def _restart(self, parallelism):
        self.position = 0 if self.last is None else self.last.position
        self._prepared = []
        if self.last is not None:
            self.commits.commit(pickle.loads(self.last.committables))
        return self._start(parallelism or len(self.operators))

    def _start(self, parallelism):
        self.operators = [self._started(subtask, parallelism) for subtask in range(parallelism)]
        return self

    def _started(self, subtask, parallelism):
        task = TaskInfo("0" * 32, "sink job", "sink", subtask, parallelism, 128)
        context = OperatorContext(
            task,
            self._node.name,
            self._node.operator_id,
            lambda: self.now_ms,
            takes_checkpoints=self._takes_checkpoints,
        )
        operator = build_operator(self._node.operator)
        operator.setup(context, RecordingOutput())
        if self.last is not None:
            former = [pickle.loads(state) for state in self.last.states]
            context.restored_checkpoint_id = self.last.number
            context.operator_state.restore(
                former[subtask] if len(former) == parallelism else share_of(former, subtask, parallelism)
            )
        operator.open()
        return operator
