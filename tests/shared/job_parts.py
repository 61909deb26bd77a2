"""Parts of jobs for tests of the job master: all kinds of sources, sinks that write exactly once, their results."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.common import Configuration, JobID, Types
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    MapFunction,
    ParallelSourceFunction,
    SourceFunction,
    TwoPhaseCommitSinkFunction,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.sinks.job_output import CollectedValues

PATIENCE_S = 10


# --- sources ---------------------------------------------------------------------------------------------------------


class Counting(SourceFunction, CheckpointedFunction, CheckpointListener):
    """Emits the numbers from `start` to `end`, and continues where its state says."""

    def __init__(self, start, end):
        self.next, self.end = start, end
        self.is_cancelled = False

    def initialize_state(self, context):
        self.offsets = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))
        for offset in self.offsets.get():
            self.next = offset

    def snapshot_state(self, context):
        self.offsets.update([self.next])

    def notify_checkpoint_complete(self, checkpoint_id):
        """A place to fail."""

    def run(self, ctx):
        while self.next < self.end and not self.is_cancelled:
            with ctx.get_checkpoint_lock():
                self.next += 1
                ctx.collect(self.next - 1)

    def cancel(self):
        self.is_cancelled = True


class Emitting(SourceFunction):
    """Emits the numbers from `start` to `end`, and keeps no state."""

    def __init__(self, start, end):
        self.numbers = range(start, end)
        self.is_cancelled = False

    def run(self, ctx):
        for number in self.numbers:
            if self.is_cancelled:
                return
            ctx.collect(number)

    def cancel(self):
        self.is_cancelled = True


class EmittingEverywhere(Emitting, ParallelSourceFunction):
    """The same in every subtask."""


@dataclass(frozen=True)
class Numbers(SourceSplit):
    name: str
    next: int
    end: int

    def split_id(self):
        return self.name


class NumbersEnumerator(SplitEnumerator):
    def __init__(self, context, splits):
        self.context, self.splits = context, list(splits)

    def handle_split_request(self, subtask_id, requester_hostname):
        if self.splits:
            self.context.assign_split(self.splits.pop(0), subtask_id)
        else:
            self.context.signal_no_more_splits(subtask_id)

    def add_splits_back(self, splits, subtask_id):
        self.splits = [*splits, *self.splits]

    def add_reader(self, subtask_id):
        """Readers ask by themselves."""

    def notify_checkpoint_complete(self, checkpoint_id):
        """A place to fail."""

    def snapshot_state(self, checkpoint_id):
        return list(self.splits)


class NumbersReader(SourceReader):
    def __init__(self, context):
        self.context, self.splits, self.has_all = context, [], False

    def start(self):
        if not self.splits:
            self.context.send_split_request()

    def poll_next(self, output):
        if not self.splits:
            return InputStatus.END_OF_INPUT if self.has_all else InputStatus.NOTHING_AVAILABLE
        split = self.splits[0]
        if split.next == split.end:
            self.splits.pop(0)
            self.context.send_split_request()
        else:
            output.collect(split.next)
            self.splits[0] = replace(split, next=split.next + 1)
        return InputStatus.MORE_AVAILABLE

    def next_poll_time(self, now_ms, idle_poll_interval_ms):
        return None

    def add_splits(self, splits):
        self.splits.extend(splits)

    def notify_no_more_splits(self):
        self.has_all = True

    def notify_checkpoint_complete(self, checkpoint_id):
        """A place to fail."""

    def snapshot_state(self, checkpoint_id):
        return list(self.splits)

    def close(self):
        """Nothing is open."""


class NumbersSource(Source):
    """The numbers from `start` to `end`, in splits of 20."""

    def __init__(self, start, end):
        self.splits = [Numbers(str(at), at, min(at + 20, end)) for at in range(start, end, 20)]

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, enum_context):
        return NumbersEnumerator(enum_context, self.splits)

    def restore_enumerator(self, enum_context, checkpoint):
        return NumbersEnumerator(enum_context, checkpoint)

    def create_reader(self, reader_context):
        return NumbersReader(reader_context)


class NumberServer:
    """Sends lines to each client that connects, and closes the connection when told to."""

    def __init__(self, lines=()):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.sent = 0
        self._lines = lines
        self.may_hang_up = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):  # The job is gone, or the test is over.
            while True:
                connection, _ = self._listening.accept()
                with connection:
                    for line in self._lines:
                        connection.sendall(f"{line}\n".encode())
                        self.sent += 1
                    self.may_hang_up.wait(PATIENCE_S)

    def close(self):
        self.may_hang_up.set()
        self._listening.close()


# --- functions and sinks ---------------------------------------------------------------------------------------------


class Listening(MapFunction, CheckpointListener):
    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        """A place to fail."""


class Numbered(KeyedProcessFunction):
    """Counts in keyed state: a lost or doubled element shows in all that follow."""

    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield count


class FileTransactions(TwoPhaseCommitSinkFunction):
    """A file for each transaction, hidden until it is committed."""

    def __init__(self, folder):
        self._folder, self._lines = Path(folder), {}

    def begin_transaction(self):
        return uuid.uuid4().hex

    def invoke(self, transaction, value, context):
        self._lines.setdefault(transaction, []).append(f"{value}\n")

    def pre_commit(self, transaction):
        (self._folder / f".{transaction}").write_text("".join(self._lines.pop(transaction, ())))

    def commit(self, transaction):
        if (self._folder / f".{transaction}").exists():
            os.replace(self._folder / f".{transaction}", self._folder / transaction)

    def abort(self, transaction):
        self._lines.pop(transaction, None)
        (self._folder / f".{transaction}").unlink(missing_ok=True)


def file_sink(folder):
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def numbers_in(folder):
    files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
    return sorted(int(line) for path in files for line in path.read_text().split())


def write_everywhere(stream, folder):
    """All kinds of output that show each element once, of one stream."""
    for name in ("files", "transactions"):
        (Path(folder) / name).mkdir(parents=True, exist_ok=True)
    stream.sink_to(file_sink(Path(folder) / "files"))
    stream.add_sink(FileTransactions(str(Path(folder) / "transactions")))
    stream.print()
    stream._sink("collected", CollectSinkDescription("collected"))


# --- jobs ------------------------------------------------------------------------------------------------------------

RESTARTING = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "10",
}
"""Every epoch is a checkpoint, and nothing is shown twice."""


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(parallelism)


@dataclass
class RunningJob:
    """A job in this process, with what it shows."""

    master: JobMaster
    lines: list[int] = field(default_factory=list)
    failure: BaseException | None = None

    def __post_init__(self):
        self.collected = self.master.output.collected["collected"] = CollectedValues()
        self.master.output.write_lines = lambda lines: self.lines.extend(int(line.split()[-1]) for _, line in lines)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.master.run()
        except BaseException as failure:
            self.failure = failure

    def start(self):
        self._thread.start()
        return self

    def join(self):
        """Wait for the end; raises what ended the job."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the job goes on"
        if self.failure is not None:
            raise self.failure
        return self

    def results(self, folder):
        """What the job has shown in all the ways of `write_everywhere`, by way."""
        return {
            "files": numbers_in(Path(folder) / "files"),
            "transactions": numbers_in(Path(folder) / "transactions"),
            "printed": sorted(self.lines),
            "collected": sorted(self.collected),
        }


class CopiesFail(InlineExecutor):
    """The first savepoints cannot be written."""

    def __init__(self, times):
        super().__init__()
        self._left = times

    def run_copies(self, copies):
        if self._left:
            self._left -= 1
            raise OSError("disk full")
        return super().run_copies(copies)


def wait_until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def job_of(env, settings, executor=None, open_folder=None):
    graph = build_job_graph(env.get_stream_graph(job_name="the job"))
    folders = {} if open_folder is None else {"open_folder": open_folder}
    master = JobMaster(
        JobID.generate(), graph, Configuration.from_dict(settings), executor or InlineExecutor(), **folders
    )
    return RunningJob(master)
