"""Sources of your own that are read exactly once, with the names of Flink's Source API.

A `Source` consists of *splits*: parts that can be read independently, each from an offset of its own (a file, a
partition of a topic, a range of ids). One `SplitEnumerator`, in the driver, finds splits and deals them out. One
`SourceReader` in each subtask reads the splits it was given and says, when a checkpoint is taken, how far it is in
each. A checkpoint holds those splits and what the enumerator knows, so after a failure, or in a new process, every
record comes once.

`SimpleSource` is enough for most sources; the classes here are for those that decide more themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_generator import WatermarkOutput
from penstock.datastream.connectors.base import Source as DescribedSource
from penstock.datastream.output_tag import OutputTag
from penstock.metrics import MetricGroup

__all__ = [
    "Boundedness",
    "InputStatus",
    "ReaderOutput",
    "Source",
    "SourceOutput",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
]

T = TypeVar("T")
SplitT = TypeVar("SplitT", bound="SourceSplit")
StateT = TypeVar("StateT")


class Boundedness(Enum):
    """Whether a source ends by itself.

    `Source` has an example.
    """

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class InputStatus(Enum):
    """What a reader says after each `poll_next`.

    `Source` has an example.
    """

    MORE_AVAILABLE = "MORE_AVAILABLE"
    """Ask again at once."""
    NOTHING_AVAILABLE = "NOTHING_AVAILABLE"
    """Nothing for now: see `SourceReader.next_poll_time`."""
    END_OF_INPUT = "END_OF_INPUT"
    """This reader will never have anything again."""


class SourceSplit(ABC):
    """A part of a source, with the offset from which to read it. Must be picklable.

    `Source` has an example.
    """

    @abstractmethod
    def split_id(self) -> str:
        """Its name, unique within the source and the same for as long as the split exists."""


# --- reading: in every subtask -------------------------------------------------------------------------------------


class SourceOutput(WatermarkOutput):
    """Where a reader emits. Watermarks given here count like those of the watermark strategy's generator.

    `Source` has an example.
    """

    @abstractmethod
    def collect(self, record: Any, timestamp: int | None = None) -> None:
        """Emit a record; the strategy's timestamp assigner gets `timestamp` as the record's own."""

    @abstractmethod
    def collect_batch(self, records: Sequence[Any], timestamps: Sequence[int | None] | None = None) -> None:
        """Emit many records at once, which is quicker than one by one."""


class ReaderOutput(SourceOutput):
    """A reader's output. Records emitted through the output of their split have watermarks of their own.

    The subtask's watermark is the smallest of its splits' watermarks; idle splits do not count.

    `Source` has an example.
    """

    @abstractmethod
    def create_output_for_split(self, split_id: str) -> SourceOutput:
        """The output of one split; the same one if asked for again."""

    @abstractmethod
    def release_output_for_split(self, split_id: str) -> None:
        """The split has ended: its watermarks are no longer waited for."""

    @abstractmethod
    def room(self) -> int:
        """How many records fit into this epoch, at least 1. More may be emitted: the epoch then takes longer."""

    @abstractmethod
    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit `value` to the side output `tag` of the source."""


class SourceReader(ABC, Generic[T, SplitT]):
    """Reads the splits of one subtask. All methods are called by one thread.

    Life: made, `add_splits` with the splits of a restored checkpoint if there is one, `start`, then in every epoch some
    `poll_next`, `snapshot_state` with every checkpoint, `close`.

    `Source` has an example.
    """

    def start(self) -> None:
        """Called before the first `poll_next`: the place to ask for a first split."""

    @abstractmethod
    def poll_next(self, output: ReaderOutput) -> InputStatus:
        """Emit the available records, one or some thousand, and say what to do next. Must not wait for records."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """All splits that are not read to their end, with their offsets as of now.

        They come back through `add_splits` after a failure; when the parallelism changes, to any of the subtasks.
        """

    @abstractmethod
    def add_splits(self, splits: list[SplitT]) -> None:
        """More splits to read, from the offsets in them."""

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """The enumerator has no more splits for this reader. A bounded reader ends when those it has are read."""

    def next_poll_time(self, now_ms: int, idle_poll_interval_ms: int) -> int | None:
        """When to poll again after NOTHING_AVAILABLE; None if only a new split or event can change that.

        Unless overridden, after `penstock.source.idle-poll-interval`.
        """
        return now_ms + idle_poll_interval_ms

    def handle_source_events(self, source_event: Any) -> None:
        """Called with an event that the enumerator sent with `send_event_to_source_reader`."""

    def pause_or_resume_splits(self, splits_to_pause: list[str], splits_to_resume: list[str]) -> None:
        """For watermark alignment: stop reading splits that are too far ahead, and continue with others, by their ids.

        A reader that does not override this is paused as a whole when all its splits are too far ahead.
        """

    def memory(self) -> Any:
        """What a reader must know besides its splits to continue in another process while the job runs; picklable.

        On a cluster that may be after any epoch. It is also kept with checkpoints, but lost if the parallelism changes.
        """
        return None

    def restore_memory(self, memory: Any) -> None:
        """Called before `add_splits` with what `memory` gave, unless that was None."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: what was read before it will not be asked for again."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed."""

    def close(self) -> None:
        """Release what the reader holds; also called after a failure."""


class SourceReaderContext(ABC):
    """What a reader can ask, and how it talks to the enumerator.

    `Source` has an example.
    """

    @abstractmethod
    def get_index_of_subtask(self) -> int:
        """Number of the subtask, from 0."""

    @abstractmethod
    def current_parallelism(self) -> int:
        """How many readers there are."""

    @abstractmethod
    def send_split_request(self) -> None:
        """Ask the enumerator for a split; it gets the request when the epoch ends. Ask twice to get two."""

    @abstractmethod
    def send_source_event_to_coordinator(self, source_event: Any) -> None:
        """Send something picklable to the enumerator's `handle_source_event`, when the epoch ends."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """The current processing time in milliseconds."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """Where the reader registers metrics."""


# --- dealing out: in the driver ------------------------------------------------------------------------------------


class SplitEnumerator(ABC, Generic[SplitT, StateT]):
    """Finds splits and deals them out to the readers. Its methods are never called by two threads at a time.

    After a failure a new one is made from the last checkpoint: `restore_enumerator`, `add_splits_back` with what had
    been assigned but not yet received, `start`, `add_reader` for every reader.

    `Source` has an example.
    """

    def start(self) -> None:
        """Called once, before anything else: the place to look for splits, once or from time to time."""

    @abstractmethod
    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        """A reader wants a split: assign one, signal that there are no more, or remember that it waits."""

    @abstractmethod
    def add_splits_back(self, splits: list[SplitT], subtask_id: int) -> None:
        """Splits that were assigned to a reader but did not reach it; they must be assigned again."""

    @abstractmethod
    def add_reader(self, subtask_id: int) -> None:
        """A reader has started and can be given splits."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> StateT:
        """What `restore_enumerator` needs: the splits that are not assigned yet, what is known already. Picklable."""

    def handle_source_event(self, subtask_id: int, source_event: Any) -> None:
        """Called with an event that a reader sent with `send_source_event_to_coordinator`."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when a checkpoint is complete."""

    def share_read(self) -> float | None:
        """Progress of a bounded source: how much was read, from 0 to 1; None if that is not known.

        Unlike all other methods, this one may be called by another thread at the same time.
        """
        return None

    def close(self) -> None:
        """Release what the enumerator holds; also called after a failure."""


class SplitEnumeratorContext(ABC, Generic[SplitT]):
    """How an enumerator reaches the readers, and how it does slow work.

    `Source` has an example.
    """

    @abstractmethod
    def current_parallelism(self) -> int:
        """How many readers there are; they are numbered from 0."""

    @abstractmethod
    def registered_readers(self) -> frozenset[int]:
        """The readers that `add_reader` was called for."""

    @abstractmethod
    def assign_split(self, split: SplitT, subtask_id: int) -> None:
        """Give a split to a reader; it reaches the reader with the next epoch."""

    @abstractmethod
    def assign_splits(self, assignment: dict[int, list[SplitT]]) -> None:
        """Give splits to readers, by the number of the subtask."""

    @abstractmethod
    def signal_no_more_splits(self, subtask_id: int) -> None:
        """Let a reader know that it will get no more splits."""

    @abstractmethod
    def send_event_to_source_reader(self, subtask_id: int, event: Any) -> None:
        """Send something picklable to a reader's `handle_source_events`, with the next epoch."""

    @abstractmethod
    def call_async(
        self,
        callable: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        """Call `callable` in a thread of its own, then `handler(result, error)` as part of the enumerator.

        With `period_ms` it is repeated. `callable` must not touch the enumerator. One of the two arguments of `handler`
        is None; an error that `handler` raises fails the job.
        """

    @abstractmethod
    def get_storage_folder(self) -> str:
        """A path or URI for files that checkpoints refer to.

        It is removed with the checkpoints, unless a savepoint of the job was written, which refers to the files, too.
        """


# --- the source ----------------------------------------------------------------------------------------------------


class Source(DescribedSource, ABC, Generic[T, SplitT, StateT]):
    """Makes the enumerator and the readers; given to `env.from_source(...)`.

    It travels to the subtasks, so it must be picklable.

    This source has one split, and its reader emits one record at a time. `SimpleSource` does the same with less code.

    >>> from dataclasses import dataclass
    >>> from penstock.common import WatermarkStrategy
    >>> @dataclass
    ... class Numbers(SourceSplit):
    ...     next: int = 0
    ...     def split_id(self):
    ...         return "numbers"
    >>> class NumbersEnumerator(SplitEnumerator):
    ...     def __init__(self, context, splits):
    ...         self.context, self.splits = context, splits
    ...     def add_reader(self, subtask_id):
    ...         self.context.assign_splits({subtask_id: self.splits})
    ...         self.context.signal_no_more_splits(subtask_id)
    ...         self.splits = []
    ...     def add_splits_back(self, splits, subtask_id):
    ...         self.splits = splits
    ...     def handle_split_request(self, subtask_id, requester_hostname):
    ...         pass
    ...     def snapshot_state(self, checkpoint_id):
    ...         return self.splits
    >>> class NumbersReader(SourceReader):
    ...     def __init__(self):
    ...         self.splits = []
    ...     def add_splits(self, splits):
    ...         self.splits += splits
    ...     def notify_no_more_splits(self):
    ...         pass
    ...     def poll_next(self, output):
    ...         split = self.splits[0]
    ...         if split.next == 3:
    ...             return InputStatus.END_OF_INPUT
    ...         output.collect(split.next)
    ...         split.next += 1
    ...         return InputStatus.MORE_AVAILABLE
    ...     def snapshot_state(self, checkpoint_id):
    ...         return self.splits
    >>> class NumbersSource(Source):
    ...     def get_boundedness(self):
    ...         return Boundedness.BOUNDED
    ...     def create_enumerator(self, context):
    ...         return NumbersEnumerator(context, [Numbers()])
    ...     def restore_enumerator(self, context, checkpoint):
    ...         return NumbersEnumerator(context, checkpoint)
    ...     def create_reader(self, context):
    ...         return NumbersReader()
    >>> list(env.from_source(NumbersSource(), WatermarkStrategy.no_watermarks(), "numbers").execute_and_collect())
    [0, 1, 2]
    """

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def get_boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""

    @abstractmethod
    def create_enumerator(self, context: SplitEnumeratorContext[SplitT]) -> SplitEnumerator[SplitT, StateT]:
        """The enumerator of a fresh start."""

    @abstractmethod
    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], checkpoint: StateT
    ) -> SplitEnumerator[SplitT, StateT]:
        """The enumerator that continues from what `snapshot_state` gave."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext) -> SourceReader[T, SplitT]:
        """The reader of one subtask."""

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, used unless `from_source` is given one; None if it does not matter."""
        return None

    @property
    def is_bounded(self) -> bool:
        return self.get_boundedness() is Boundedness.BOUNDED
