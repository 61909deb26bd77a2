"""Sinks of your own that write exactly once, with the names of Flink's Sink V2.

A `Sink` makes one `SinkWriter` for each subtask. What a writer has ready when a checkpoint is taken are its
*committables*: values that say what to make visible (the name of a hidden file, the number of a transaction). They
are kept in the checkpoint, and when that is complete one `Committer`, in the driver, makes them visible. After a
restart the committables of the restored checkpoint are committed again: to commit twice must be the same as once.

- a `Sink` alone writes at least once, if its writer flushes what it holds when asked to
- with `SupportsCommitter` it writes exactly once
- with `SupportsWriterState` its writers also keep state of their own in checkpoints
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.datastream.connectors.base import Sink
from penstock.metrics import MetricGroup

__all__ = [
    "CommitRequest",
    "Committer",
    "CommitterInitContext",
    "CommittingSinkWriter",
    "JobInfo",
    "ProcessingTimeService",
    "Sink",
    "SinkWriter",
    "StatefulSinkWriter",
    "SupportsCommitter",
    "SupportsWriterState",
    "TaskInfo",
    "WriterInitContext",
]

InputT = TypeVar("InputT")
CommT = TypeVar("CommT")
StateT = TypeVar("StateT")


# --- writing: in every subtask -------------------------------------------------------------------------------------


class SinkWriterContext(ABC):
    """What a writer can ask about the element being written."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current watermark."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element; None if it has none."""


class SinkWriter(ABC, Generic[InputT]):
    """Writes the elements of one subtask. At a checkpoint: `flush(False)`, `prepare_commit`, `snapshot_state`.

    `Sink` has an example.
    """

    Context = SinkWriterContext

    @abstractmethod
    def write(self, element: InputT, context: SinkWriterContext) -> None:
        """Write one element, or put it into a buffer."""

    @abstractmethod
    def flush(self, end_of_input: bool) -> None:
        """Write everything that is buffered; `end_of_input` is True when no more elements will come."""

    def write_watermark(self, watermark: int) -> None:
        """Called for every watermark that reaches the sink."""

    def prepare_commit(self) -> list[Any]:
        """What to commit once the checkpoint is complete: everything written since the last call. Must be picklable.

        Asked for only if the sink is a `SupportsCommitter`.
        """
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """What `restore_writer` needs to continue from here. Must be picklable.

        Asked for only if the sink is a `SupportsWriterState`. Each item may go to another subtask when the parallelism
        changes.
        """
        return []

    def close(self) -> None:
        """Release what the writer holds; also called after a failure."""


class CommittingSinkWriter(SinkWriter[InputT], Generic[InputT, CommT]):
    """A writer whose elements become visible by a commit.

    `SupportsCommitter` has an example.
    """

    @abstractmethod
    def prepare_commit(self) -> list[CommT]:
        """What to commit once the checkpoint is complete: everything written since the last call."""


class BatchSinkWriter(SinkWriter[InputT]):
    """A writer that takes the elements of a batch at once, which costs less than one call for each."""

    @abstractmethod
    def write_batch(self, elements: Sequence[InputT], timestamps: Sequence[int | None] | None) -> None:
        """Write elements in order, or put them into a buffer. There are as many timestamps, or none at all."""

    def write(self, element: InputT, context: SinkWriterContext) -> None:
        self.write_batch([element], [context.timestamp()])


class StatefulSinkWriter(SinkWriter[InputT], Generic[InputT, StateT]):
    """A writer that keeps state in checkpoints.

    `SupportsWriterState` has an example.
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[StateT]:
        """What `restore_writer` needs to continue from here."""


# --- committing: in the driver -------------------------------------------------------------------------------------


class CommitRequest(ABC, Generic[CommT]):
    """A committable, waiting for its commit. Without a signal it counts as committed when `commit` returns.

    `SupportsCommitter` has an example.
    """

    @abstractmethod
    def get_committable(self) -> CommT:
        """What the writer prepared."""

    @abstractmethod
    def get_number_of_retries(self) -> int:
        """How often it was tried before: 0 the first time."""

    @abstractmethod
    def signal_failed_with_known_reason(self, reason: BaseException) -> None:
        """It can never be committed, and that is acceptable: it is logged and given up, the job continues."""

    @abstractmethod
    def signal_failed_with_unknown_reason(self, reason: BaseException) -> None:
        """It cannot be committed: the job fails, and a restart tries again."""

    @abstractmethod
    def retry_later(self) -> None:
        """Try again after a pause; after the last attempt the job fails."""

    @abstractmethod
    def update_and_retry_later(self, committable: CommT) -> None:
        """Try again after a pause, with another committable: what is left of this one."""

    @abstractmethod
    def signal_already_committed(self) -> None:
        """It was committed before, as after a restart: nothing is wrong."""


class Committer(ABC, Generic[CommT]):
    """Makes visible what writers prepared. There is one for each sink, in the driver; one thread calls it.

    `SupportsCommitter` has an example.
    """

    @abstractmethod
    def commit(self, requests: list[CommitRequest[CommT]]) -> None:
        """Commit, and signal on each request that cannot be committed now. An exception fails the job.

        The same committables may come again after a restart, even if they were committed.
        """

    def close(self) -> None:
        """Release what the committer holds."""


# --- what is given to them -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobInfo:
    """Which job it is.

    >>> JobInfo("3f2a" * 8, "orders").get_job_name()
    'orders'
    """

    job_id: str
    job_name: str

    def get_job_id(self) -> str:
        """The job's id, 32 hexadecimal digits."""
        return self.job_id

    def get_job_name(self) -> str:
        """The job's name."""
        return self.job_name


@dataclass(frozen=True)
class TaskInfo:
    """Which subtask it is; subtasks and attempts are counted from 0.

    `Sink` has an example of a writer, which gets this from its context.
    """

    task_name: str
    index_of_this_subtask: int
    number_of_parallel_subtasks: int
    max_number_of_parallel_subtasks: int
    attempt_number: int = 0

    def get_task_name(self) -> str:
        """The name of the operator chain."""
        return self.task_name

    def get_task_name_with_subtasks(self) -> str:
        """The name with the subtask, as people count: `Sink: orders (1/4)`."""
        return f"{self.task_name} ({self.index_of_this_subtask + 1}/{self.number_of_parallel_subtasks})"

    def get_index_of_this_subtask(self) -> int:
        """The number of the subtask, from 0."""
        return self.index_of_this_subtask

    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks there are."""
        return self.number_of_parallel_subtasks

    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many subtasks there can ever be: the number of key groups."""
        return self.max_number_of_parallel_subtasks

    def get_attempt_number(self) -> int:
        """How often the subtask was restarted."""
        return self.attempt_number


class ProcessingTimeService(ABC):
    """The clock, and calls at a later time.

    `Sink` has an example of a writer, which gets this from its context.
    """

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """The current processing time in milliseconds."""

    @abstractmethod
    def register_timer(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Call `callback(timestamp)` once, when that time has come. Timers are not part of checkpoints."""


class WriterInitContext(ABC):
    """What a writer can ask when it is made.

    `Sink` has an example.
    """

    @abstractmethod
    def get_job_info(self) -> JobInfo:
        """Which job it is."""

    @abstractmethod
    def get_task_info(self) -> TaskInfo:
        """Which subtask it is."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Number of the checkpoint restored from; None on a fresh start."""

    @abstractmethod
    def get_processing_time_service(self) -> ProcessingTimeService:
        """The clock, and calls at a later time."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """Where the writer registers metrics."""

    def takes_checkpoints(self) -> bool:
        """False if the job has no checkpoint interval: only its end, or a savepoint, commits what is written."""
        return True


class CommitterInitContext(ABC):
    """What a committer can ask when it is made.

    `SupportsCommitter` has an example.
    """

    @abstractmethod
    def get_job_info(self) -> JobInfo:
        """Which job it is."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """Where the committer registers metrics."""


# --- what a sink can do, besides making writers --------------------------------------------------------------------


class SupportsWriterState(ABC, Generic[StateT]):
    """A sink whose writers keep state in checkpoints.

    >>> class Numbered(StatefulSinkWriter):
    ...     def __init__(self, count=0):
    ...         self.count = count
    ...     def write(self, element, context):
    ...         self.count += 1
    ...         print(self.count, element)
    ...     def flush(self, end_of_input):
    ...         pass
    ...     def snapshot_state(self, checkpoint_id):
    ...         return [self.count]
    >>> class NumberedSink(Sink, SupportsWriterState):
    ...     def create_writer(self, context):
    ...         return Numbered()
    ...     def restore_writer(self, context, recovered_state):
    ...         return Numbered(sum(recovered_state))
    >>> _ = env.from_collection(["a", "b"]).sink_to(NumberedSink())
    >>> _ = env.execute("numbered")
    1 a
    2 b
    """

    @abstractmethod
    def restore_writer(self, context: WriterInitContext, recovered_state: list[StateT]) -> SinkWriter[Any]:
        """The writer of one subtask after a restart, with its share of what the writers saved; it may be empty."""


class SupportsCommitter(ABC, Generic[CommT]):
    """A sink whose elements become visible by a commit, when a checkpoint is complete.

    >>> class BatchWriter(CommittingSinkWriter):
    ...     def __init__(self):
    ...         self.batch = []
    ...     def write(self, element, context):
    ...         self.batch.append(element)
    ...     def flush(self, end_of_input):
    ...         pass
    ...     def prepare_commit(self):
    ...         batch, self.batch = self.batch, []
    ...         return [batch] if batch else []
    >>> class Printed(Committer):
    ...     def commit(self, requests):
    ...         for request in requests:
    ...             print(request.get_committable())
    >>> class BatchSink(Sink, SupportsCommitter):
    ...     def create_writer(self, context):
    ...         return BatchWriter()
    ...     def create_committer(self, context):
    ...         return Printed()
    >>> _ = env.from_collection([1, 2, 3]).sink_to(BatchSink())
    >>> _ = env.execute("batches")
    [1, 2, 3]
    """

    @abstractmethod
    def create_committer(self, context: CommitterInitContext) -> Committer[CommT]:
        """The committer, made in the driver when it is first needed."""
