"""WindowedStream and AllWindowedStream: elements grouped by window, waiting for a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, overload

from penstock.common import config_keys as keys
from penstock.common.exceptions import InvalidProgramError
from penstock.common.time import to_milliseconds
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.fields import AggregationKind, Field, FieldAggregation
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.element_types import K, T
from penstock.datastream.streams.function_checks import check_function
from penstock.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from penstock.datastream.windowing.assigner import check_trigger
from penstock.datastream.windowing.called_by_name import OwnProcessAllWindow, OwnProcessWindow
from penstock.datastream.windowing.decomposition import merge_of, merges_alike, reduces_in_any_grouping
from penstock.graph.descriptions import WindowDescription

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.streams.keyed_stream import KeyedStream


def time_windows(environment: StreamExecutionEnvironment, size: Any, slide: Any) -> WindowAssigner[Any, Any]:
    """The windows of `time_window`: the environment's time characteristic chooses the kind of time."""
    if environment.uses_event_time_windows():
        return TumblingEventTimeWindows.of(size) if slide is None else SlidingEventTimeWindows.of(size, slide)
    return TumblingProcessingTimeWindows.of(size) if slide is None else SlidingProcessingTimeWindows.of(size, slide)


def count_windows(size: int, slide: int) -> WindowAssigner[Any, Any]:
    return CountTumblingWindowAssigner.of(size) if slide == 0 else CountSlidingWindowAssigner.of(size, slide)


class _Windowed(Generic[T]):
    """What windows with and without keys share. Each setting changes this object and returns it, as in Flink."""

    _is_all: bool

    def __init__(self, stream: DataStream[T], window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(f"window needs a WindowAssigner, got {type(window_assigner).__name__}")
        self._stream = stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._assigner} of {self._stream!r}>"

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that this stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The declared type of the elements."""
        return self._stream.get_type()

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Choose when a window's function is called, instead of by the assigner's default trigger.

        >>> from penstock.datastream.window import CountTrigger, GlobalWindows
        >>> numbers = env.from_collection([1, 2, 3, 4]).window_all(GlobalWindows.create())
        >>> list(numbers.trigger(CountTrigger.of(2)).sum().execute_and_collect())
        [3, 10]
        """
        if not isinstance(trigger, Trigger):
            raise TypeError(f"trigger needs a Trigger, got {type(trigger).__name__}")
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Remove elements from a window before or after its function is called. All elements are kept until then.

        >>> from penstock.datastream.window import CountEvictor
        >>> numbers = env.from_collection([1, 2, 3, 4]).count_window_all(2)
        >>> list(numbers.evictor(CountEvictor.of(1)).sum().execute_and_collect())
        [2, 4]
        """
        if not isinstance(evictor, Evictor):
            raise TypeError(f"evictor needs an Evictor, got {type(evictor).__name__}")
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: Any) -> Self:
        """How long after its end a window still accepts late elements, in event time; it fires again for each of them.

        Its contents are kept that much longer. Elements that are even later are dropped, or go to
        `side_output_late_data`.

        >>> from penstock.common import Time
        >>> from penstock.datastream.window import TumblingEventTimeWindows
        >>> from penstock.testing import OperatorHarness
        >>> def totals(stream):
        ...     windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.allowed_lateness(2000).sum(1)
        >>> harness = OperatorHarness.of(totals).element(("a", 1), at=1000).watermark(5000)
        >>> harness.element(("a", 2), at=4000).watermark(7000).element(("a", 4), at=4000).output
        [('a', 1), ('a', 3)]
        """
        lateness_ms = to_milliseconds(time_ms)
        if lateness_ms < 0:
            raise InvalidProgramError(f"allowed_lateness cannot be negative, got {lateness_ms} ms")
        self._allowed_lateness_ms = lateness_ms
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send elements that are too late for all their windows to a side output; without it they are dropped.

        >>> from penstock.common import Time
        >>> from penstock.datastream import OutputTag
        >>> from penstock.datastream.window import TumblingEventTimeWindows
        >>> from penstock.testing import OperatorHarness
        >>> LATE = OutputTag("late")
        >>> def totals(stream):
        ...     windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.side_output_late_data(LATE).sum(1)
        >>> OperatorHarness.of(totals).watermark(5000).element(("a", 2), at=4000).side_output(LATE)
        [('a', 2)]
        """
        self._late_tag = output_tag
        return self

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], Any] | ReduceFunction,
        window_function: None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[T]: ...

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T, T], Any] | ReduceFunction,
        window_function: Any,
        output_type: TypeInformation | None = None,
    ) -> DataStream: ...

    def reduce(
        self, reduce_function: Any, window_function: Any = None, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One value for each window, built as elements come. A window function gets it when the window fires.

        >>> pairs = env.from_collection([("a", 1), ("a", 2), ("a", 3), ("a", 4)])
        >>> windows = pairs.key_by(lambda pair: pair[0]).count_window(2)
        >>> list(windows.reduce(lambda a, b: (a[0], a[1] * b[1])).execute_and_collect())
        [('a', 2), ('a', 12)]
        """
        function = check_function(reduce_function, ReduceFunction, "reduce")
        type_info = output_type or (self._stream.transformation.output_type if window_function is None else None)
        return self._windowed(window_function, type_info, reduce_function=function)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """One result for each window, from an accumulator that is updated as elements come.

        >>> from penstock.datastream import AggregateFunction
        >>> class Average(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return 0, 0
        ...     def add(self, value, accumulator):
        ...         return accumulator[0] + value, accumulator[1] + 1
        ...     def get_result(self, accumulator):
        ...         return accumulator[0] / accumulator[1]
        ...     def merge(self, a, b):
        ...         return a[0] + b[0], a[1] + b[1]
        >>> numbers = env.from_collection([1, 2, 3, 6])
        >>> list(numbers.key_by(lambda _: "all").count_window(2).aggregate(Average()).execute_and_collect())
        [1.5, 4.5]
        """
        if not isinstance(aggregate_function, AggregateFunction):
            raise TypeError(f"aggregate needs an AggregateFunction, got {type(aggregate_function).__name__}")
        return self._windowed(window_function, output_type, aggregate_function=aggregate_function)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call the function with the key, the window and all its elements when the window fires."""
        self._check_window_function(window_function, "apply")
        return self._windowed(window_function, output_type)

    def process(self, process_window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call the function with all elements of the window and a context: the window, the time and its state.

        >>> from penstock.datastream import ProcessWindowFunction
        >>> class Sorted(ProcessWindowFunction):
        ...     def process(self, key, context, elements):
        ...         yield key, sorted(element[1] for element in elements)
        >>> pairs = env.from_collection([("a", 3), ("b", 1), ("a", 2), ("b", 5)])
        >>> list(pairs.key_by(lambda pair: pair[0]).count_window(2).process(Sorted()).execute_and_collect())
        [('a', [2, 3]), ('b', [1, 5])]
        """
        function = self._as_process_function(process_window_function)
        self._check_window_function(function, "process")
        return self._windowed(function, output_type)

    def sum(self, position_to_sum: Field = 0) -> DataStream[T]:
        """The sum of a field for each window; the other fields are those of the first element.

        >>> list(env.from_collection([("a", 1), ("b", 2)]).count_window_all(2).sum(1).execute_and_collect())
        [('a', 3)]
        """
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: Field = 0) -> DataStream[T]:
        """The minimum of a field for each window; the other fields are those of the first element.

        >>> list(env.from_collection([("a", 2), ("b", 1)]).count_window_all(2).min(1).execute_and_collect())
        [('a', 1)]
        """
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: Field = 0) -> DataStream[T]:
        """The maximum of a field for each window; the other fields are those of the first element.

        >>> list(env.from_collection([("a", 1), ("b", 2)]).count_window_all(2).max(1).execute_and_collect())
        [('a', 2)]
        """
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream[T]:
        """The element of each window with the smallest field; the first of equals.

        >>> list(env.from_collection([("a", 2), ("b", 1)]).count_window_all(2).min_by(1).execute_and_collect())
        [('b', 1)]
        """
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream[T]:
        """The element of each window with the largest field; the first of equals.

        >>> list(env.from_collection([("a", 1), ("b", 2)]).count_window_all(2).max_by(1).execute_and_collect())
        [('b', 2)]
        """
        return self._aggregated("max_by", position_to_max_by)

    def _aggregated(self, kind: AggregationKind, field: Field) -> DataStream[T]:
        return self.reduce(FieldAggregation(kind, field))

    def _as_process_function(self, function: Any) -> Any:
        """As PyFlink does, take any function with the method that is called: its base class may be another one."""
        kinds: tuple[type, ...] = (ProcessAllWindowFunction,) if self._is_all else (ProcessWindowFunction,)
        if isinstance(function, (Function, *kinds)) and not isinstance(function, kinds):
            if callable(getattr(function, "process", None)):
                return OwnProcessAllWindow(function) if self._is_all else OwnProcessWindow(function)
        return function

    def _check_window_function(self, function: Any, method: str) -> None:
        keyed, unkeyed = (WindowFunction, ProcessWindowFunction), (AllWindowFunction, ProcessAllWindowFunction)
        kinds = unkeyed if self._is_all else keyed
        if not isinstance(function, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{method} needs a {names}, got {type(function).__name__}")

    def _key_selector(self) -> Any:
        raise NotImplementedError

    def _windowed(self, window_function: Any, output_type: TypeInformation | None, **contents: Any) -> DataStream:
        if window_function is not None:
            self._check_window_function(window_function, next(iter(contents), "window").removesuffix("_function"))
        environment = self._stream.get_execution_environment()
        trigger = self._trigger if self._trigger is not None else self._assigner.get_default_trigger(environment)
        check_trigger(self._assigner, trigger)
        description = WindowDescription(
            self._key_selector(),
            self._assigner,
            trigger,
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness_ms,
            late_tag=self._late_tag,
            window_function=window_function,
            is_all=self._is_all,
            **self._combining(trigger, **contents),
            **contents,
        )
        return self._add(description, output_type, self._text(description))

    def _combining(
        self, trigger: Trigger[Any, Any], reduce_function: Any = None, aggregate_function: Any = None
    ) -> dict[str, Any]:
        """Whether elements are reduced before the exchange, and how: only where the result is known to be the same.

        Then a function also reduces what was already reduced. Flink reduces one element after the other, so that
        `lambda a, b: (a[0], a[1] + 1)` counts. Hence the function's code and the declared type of its elements must
        show that grouping does not matter, and, except for tumbling windows, that order does not either.
        """
        if not self._fires_once(trigger, reduce_function or aggregate_function):
            return {}
        elements, selector = self._stream.transformation, self._key_selector()
        if aggregate_function is not None:
            merge = merge_of(aggregate_function, selector, elements)
            if isinstance(self._assigner, EventTimeSessionWindows) and merge is not None:
                merge = merge if merges_alike(aggregate_function, merge) else None
            return {"combines": merge is not None, "merge": merge}
        keeps_order = isinstance(self._assigner, TumblingEventTimeWindows)
        return {"combines": reduces_in_any_grouping(reduce_function, selector, elements, keeps_order)}

    def _fires_once(self, trigger: Trigger[Any, Any], function: Any) -> bool:
        """True for windows that fire once, at their end, and whose function has no `open`."""
        return (
            self.get_execution_environment().get_configuration().get(keys.COMBINE)
            and _combines(self._assigner)
            and type(trigger) is EventTimeTrigger
            and self._evictor is None
            and self._allowed_lateness_ms == 0
            and self._late_tag is None
            and function is not None
            and getattr(type(function), "open", Function.open) is Function.open
        )

    def _add(self, description: WindowDescription, output_type: TypeInformation | None, text: str) -> DataStream:
        raise NotImplementedError

    def _text(self, description: WindowDescription) -> str:
        """Flink's form: Window(assigner, trigger, contents, function)."""
        function = description.window_function
        parts = [str(description.assigner), type(description.trigger).__name__]
        if description.evictor is not None:
            parts.append(type(description.evictor).__name__)
        contents = description.reduce_function or description.aggregate_function
        if contents is not None:
            parts.append(str(contents) if isinstance(contents, FieldAggregation) else _name_of(contents))
        parts.append("PassThroughWindowFunction" if function is None else _name_of(function))
        return f"Window({', '.join(parts)})"


def _combines(assigner: WindowAssigner[Any, Any]) -> bool:
    if isinstance(assigner, TumblingEventTimeWindows) and type(assigner) is TumblingEventTimeWindows:
        return assigner.window_stagger is WindowStagger.ALIGNED
    if isinstance(assigner, SlidingEventTimeWindows) and type(assigner) is SlidingEventTimeWindows:
        return assigner.slide <= assigner.size
    return type(assigner) is EventTimeSessionWindows


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else str(name)


class WindowedStream(_Windowed[T], Generic[T, K]):
    """Windows of a keyed stream, for each key its own. Settings change this object and return it.

    >>> from penstock.common import Time
    >>> from penstock.datastream.window import EventTimeSessionWindows
    >>> keyed = env.from_collection([("ann", 1)]).key_by(lambda click: click[0])
    >>> sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.minutes(5))).allowed_lateness(Time.minutes(1))
    """

    _is_all = False

    def __init__(self, keyed_stream: KeyedStream[T, K], window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, window_assigner)
        self._keyed_stream = keyed_stream

    def _key_selector(self) -> Any:
        return self._keyed_stream.key_selector

    def _add(self, description: WindowDescription, output_type: TypeInformation | None, text: str) -> DataStream:
        return self._stream._then(type(self._assigner).__name__, description, output_type).set_description(text)


class AllWindowedStream(_Windowed[T]):
    """Windows over all elements, in one subtask.

    >>> list(env.from_collection([4, 1, 3, 9]).count_window_all(2).max().execute_and_collect())
    [4, 9]
    """

    _is_all = True

    def _key_selector(self) -> Any:
        return _the_only_key

    def _add(self, description: WindowDescription, output_type: TypeInformation | None, text: str) -> DataStream:
        everything = self._stream._values()
        stream = everything._then(type(self._assigner).__name__, description, output_type, is_parallelism_fixed=True)
        stream.force_non_parallel()
        return stream.set_description(text)


def _the_only_key(_: Any) -> int:
    return 0
