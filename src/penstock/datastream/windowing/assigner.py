"""What a window assigner is: `WindowAssigner`, and `MergingWindowAssigner` for windows that grow together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.exceptions import InvalidProgramError
from penstock.common.serializer import TypeSerializer
from penstock.datastream.windowing.trigger import Trigger
from penstock.datastream.windowing.windows import Window

if TYPE_CHECKING:
    from penstock.datastream.functions import RuntimeContext

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns each element to zero or more windows.

    The elements of one key in one window form a pane; a `Trigger` decides when the pane is handed to the window
    function. Assigners are immutable; what they must remember goes into keyed state.

    >>> from penstock.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer
    >>> from penstock.testing import OperatorHarness
    >>> class Hours(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         start = timestamp - timestamp % 3_600_000
    ...         return [TimeWindow(start, start + 3_600_000)]
    ...     def get_default_trigger(self, env=None):
    ...         return EventTimeTrigger()
    ...     def get_window_serializer(self):
    ...         return TimeWindowSerializer()
    ...     def is_event_time(self):
    ...         return True
    >>> harness = OperatorHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).window(Hours()).sum(1))
    >>> harness.element(("a", 1), at=10).element(("a", 2), at=20).watermark(3_600_000).output
    [('a', 3)]
    """

    class WindowAssignerContext(ABC):
        """What an assigner can ask while it assigns."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The current processing time in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where an assigner that must remember something gets its keyed state."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows that `element` belongs to."""

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[T, W]:
        """The trigger of a windowed stream that sets none itself."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """How windows are written where they leave the process."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """True if windows are assigned, closed and cleaned up by event time."""

    def stagger_offset_ms(self, current_processing_time: int) -> int:
        """How far one subtask shifts its windows; asked once, at its first element."""
        return 0

    def shifted(self, stagger_offset_ms: int) -> WindowAssigner[T, W]:
        """This assigner as one subtask uses it, shifted by its stagger offset."""
        return self


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may merge, such as sessions.

    `EventTimeSessionWindows` has an example.
    """

    class MergeCallback(ABC, Generic[W2]):
        """Takes the merges that `merge_windows` found."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Merge `to_be_merged` into the one window `merge_result`."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Find which of `windows` merge, and call `callback` for them."""


def _named(trigger: Trigger[Any, Any]) -> str:
    """The trigger's own text; the name of its class if it has none."""
    has_text = type(trigger).__repr__ is not object.__repr__ or type(trigger).__str__ is not object.__str__
    return str(trigger) if has_text else type(trigger).__name__


def check_trigger(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any]) -> None:
    """Raise if `trigger` cannot be used with the windows of `assigner`."""
    if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
        raise InvalidProgramError(
            f"{assigner} merges windows, but {_named(trigger)} cannot be merged; override can_merge() to return True, "
            f"and on_merge(), or use one that can, such as EventTimeTrigger, ProcessingTimeTrigger or CountTrigger"
        )
