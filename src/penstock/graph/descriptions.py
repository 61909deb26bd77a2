"""What each operator is to do, as immutable values. `penstock.runtime` builds the operators that do it.

User functions are kept as the user gave them: an instance of a function class, or a plain callable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from penstock.common.typeinfo import TypeInformation
    from penstock.common.watermark_strategy import WatermarkStrategy

KeySelectorFunction = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class OperatorDescription:
    """Base of all operators."""

    @property
    def is_keyed(self) -> bool:
        """True if the operator's state and timers belong to a key."""
        return False

    @property
    def takes_on_error(self) -> bool:
        """True if a function is called for each element, so that one for which it raises can be left out."""
        return isinstance(self, (ElementDescription, *_PROCESSING, SinkFunctionDescription))


@dataclass(frozen=True, eq=False)
class ElementDescription(OperatorDescription):
    """An operator around a function of one element. With a `key_selector` the function may use keyed state."""

    function: Any
    key_selector: KeySelectorFunction | None = None

    @property
    def is_keyed(self) -> bool:
        return self.key_selector is not None


# --- one input, no state -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MapDescription(ElementDescription):
    pass


@dataclass(frozen=True, eq=False)
class FlatMapDescription(ElementDescription):
    pass


@dataclass(frozen=True, eq=False)
class FilterDescription(ElementDescription):
    pass


@dataclass(frozen=True, eq=False)
class LoweredDescription(OperatorDescription):
    """A map or filter that Spark SQL carries out before its source is read.

    `operator` does it for rows that are left to Python; `output_type` is the type it was declared with.
    """

    operator: ElementDescription
    output_type: TypeInformation | None
    is_last: bool
    """True if no lowered operator follows."""


@dataclass(frozen=True, eq=False)
class WatermarksDescription(OperatorDescription):
    """Timestamps and watermarks assigned in the middle of a stream (or chained to a source)."""

    strategy: WatermarkStrategy
    auto_watermark_interval_ms: int = 200
    only_final: bool = False
    """True in batch mode: only the last watermark is emitted."""


@dataclass(frozen=True, eq=False)
class ProcessDescription(OperatorDescription):
    function: Any


@dataclass(frozen=True, eq=False)
class ListFunctionDescription(OperatorDescription):
    """A function from the elements of a batch to a list of results. Without `timestamps_of` they have no timestamps."""

    function: Callable[[list[Any]], list[Any]]
    timestamps_of: Callable[[list[Any]], list[int | None]] | None = None


@dataclass(frozen=True, eq=False)
class WatermarkDelayDescription(OperatorDescription):
    """Holds watermarks back, because the operator before may still emit elements that are so much older."""

    delay_ms: int


@dataclass(frozen=True, eq=False)
class AsyncDescription(OperatorDescription):
    function: Any
    timeout_ms: int
    capacity: int
    is_ordered: bool
    retry_strategy: Any


# --- keyed ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeyedDescription(OperatorDescription):
    """An operator behind key_by. `key_selector` gives the key of an element where the exchange did not."""

    key_selector: KeySelectorFunction

    @property
    def is_keyed(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class ReduceDescription(KeyedDescription):
    """A rolling reduce: every element emits the new value of its key; in batch mode only the last one is emitted."""

    function: Any
    only_final: bool = False


@dataclass(frozen=True, eq=False)
class KeyedProcessDescription(KeyedDescription):
    function: Any


MergeKind = Literal["sum", "min", "max", "any"]
"""How a field of two accumulators is merged; `any`: both have the same."""


@dataclass(frozen=True)
class AccumulatorMerge:
    """How to merge two accumulators of an aggregate function into that of all elements, in any order."""

    kinds: tuple[MergeKind, ...]
    is_tuple: bool
    """False if the accumulator is a single value."""


@dataclass(frozen=True, eq=False)
class WindowDescription(KeyedDescription):
    """A window operator.

    Exactly one of three contents: `reduce_function`, `aggregate_function`, or neither (all elements are kept).
    `window_function` gets the contents when the window fires (None: the aggregate itself is emitted).
    """

    assigner: Any
    trigger: Any
    evictor: Any = None
    allowed_lateness_ms: int = 0
    late_tag: Any = None
    reduce_function: Any = None
    aggregate_function: Any = None
    window_function: Any = None
    is_all: bool = False
    """True for window_all: the window function is called without a key."""
    combines: bool = False
    """True if elements may be reduced before they reach the operator: the result does not depend on the grouping."""
    merge: AccumulatorMerge | None = None
    """Set for an `aggregate_function` whose accumulators may reach the operator in place of elements."""


# --- two inputs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoInputDescription(OperatorDescription):
    """An operator with two inputs. `key_selectors` are set when both are keyed (one: only the first is)."""

    function: Any
    key_selectors: tuple[KeySelectorFunction | None, KeySelectorFunction | None] = (None, None)

    @property
    def is_keyed(self) -> bool:
        return self.key_selectors[0] is not None


@dataclass(frozen=True, eq=False)
class CoMapDescription(TwoInputDescription):
    pass


@dataclass(frozen=True, eq=False)
class CoFlatMapDescription(TwoInputDescription):
    pass


@dataclass(frozen=True, eq=False)
class CoProcessDescription(TwoInputDescription):
    pass


@dataclass(frozen=True, eq=False)
class BroadcastProcessDescription(TwoInputDescription):
    """The second input is the broadcast one; `state_descriptors` name its broadcast state."""

    state_descriptors: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class IntervalJoinDescription(TwoInputDescription):
    """Pairs of both inputs with left + lower <= right <= left + upper; `function` is a ProcessJoinFunction."""

    lower_bound_ms: int = 0
    upper_bound_ms: int = 0
    is_lower_inclusive: bool = True
    is_upper_inclusive: bool = True
    late_left_tag: Any = None
    late_right_tag: Any = None


# --- sources -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SourceDescription(OperatorDescription):
    """Base of all sources. `is_bounded` is True if the source ends by itself."""

    watermarks: WatermarksDescription | None = field(default=None, kw_only=True)
    """Timestamps and watermarks made right behind the source."""

    @property
    def is_bounded(self) -> bool:
        raise NotImplementedError

    @property
    def max_source_parallelism(self) -> int | None:
        """1 for a source that cannot be read in parallel, None if any parallelism will do."""
        return None

    @property
    def makes_watermarks_itself(self) -> bool:
        """True if the source's operator carries out `watermarks`, False if an operator behind it does."""
        return False

    @property
    def has_declared_form(self) -> bool:
        """True if elements leave the driver in the form of their declared type."""
        return True

    def for_executors(self) -> SourceDescription:
        """The description without what only the driver needs."""
        return self


@dataclass(frozen=True, eq=False)
class CollectionSourceDescription(SourceDescription):
    values: Sequence[Any]

    def for_executors(self) -> SourceDescription:
        return replace(self, values=())

    @property
    def is_bounded(self) -> bool:
        return True

    @property
    def max_source_parallelism(self) -> int | None:
        return 1


@dataclass(frozen=True, eq=False)
class SequenceSourceDescription(SourceDescription):
    """The numbers `start` to `end`, both included, split among the subtasks."""

    start: int
    end: int

    @property
    def is_bounded(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class SocketSourceDescription(SourceDescription):
    host: str
    port: int
    delimiter: str = "\n"
    max_retries: int = 0
    """Connection attempts after a lost or refused connection; negative means without limit."""
    retry_delay_ms: int = 500

    @property
    def is_bounded(self) -> bool:
        return False

    @property
    def max_source_parallelism(self) -> int | None:
        return 1


@dataclass(frozen=True, eq=False)
class SplitSourceDescription(SourceDescription):
    """A Source: splits that an enumerator in the driver deals out to readers in the subtasks."""

    source: Any

    @property
    def has_declared_form(self) -> bool:
        return False

    @property
    def is_bounded(self) -> bool:
        return bool(self.source.is_bounded)

    @property
    def makes_watermarks_itself(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class FunctionSourceDescription(SourceDescription):
    """A SourceFunction: it runs in the driver, once for each subtask."""

    function: Any
    is_parallel: bool = False

    @property
    def has_declared_form(self) -> bool:
        return False

    @property
    def is_bounded(self) -> bool:
        return False

    @property
    def max_source_parallelism(self) -> int | None:
        return None if self.is_parallel else 1

    def for_executors(self) -> SourceDescription:
        return replace(self, function=None)


# --- sinks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SinkDescription(OperatorDescription):
    """Base of all sinks."""

    @property
    def commits_with_checkpoints(self) -> bool:
        """True if what was written becomes visible only when a checkpoint is complete."""
        return False


@dataclass(frozen=True, eq=False)
class DriverSinkDescription(SinkDescription):
    """A sink whose work is done in the driver: no stage of its own is needed for it."""


@dataclass(frozen=True, eq=False)
class PrintSinkDescription(DriverSinkDescription):
    identifier: str = ""
    stream: Literal["stdout", "stderr"] = "stdout"
    type_info: TypeInformation | None = None
    look: Literal["flink", "pyflink"] = "flink"
    """The system whose `print()` lines the output looks like."""


@dataclass(frozen=True, eq=False)
class CollectSinkDescription(DriverSinkDescription):
    """Hands the values to the iterator of execute_and_collect."""

    collect_id: str


@dataclass(frozen=True, eq=False)
class SinkFunctionDescription(SinkDescription):
    function: Any


@dataclass(frozen=True, eq=False)
class TwoPhaseCommitDescription(SinkDescription):
    """A TwoPhaseCommitSinkFunction: one transaction for each checkpoint, committed by the subtask."""

    function: Any

    @property
    def commits_with_checkpoints(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class SinkWriterDescription(SinkDescription):
    """A Sink V2: writers in the subtasks and, if `has_committer`, a committer in the driver."""

    sink: Any
    has_committer: bool = False

    @property
    def commits_with_checkpoints(self) -> bool:
        return self.has_committer


_PROCESSING = (
    ProcessDescription,
    AsyncDescription,
    KeyedProcessDescription,
    ReduceDescription,
    CoMapDescription,
    CoFlatMapDescription,
    CoProcessDescription,
    BroadcastProcessDescription,
)
