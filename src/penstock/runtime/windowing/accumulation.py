"""How the elements of a pane (one key in one window) add up: to one value, to an accumulator, or to a list.

What a pane holds is a plain value; storing it is the business of `panes`. As in Flink, None is no value: a pane that
reduces or aggregates to None is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.window import TimestampedValue
from penstock.graph.descriptions import AccumulatorMerge, MergeKind, WindowDescription
from penstock.runtime.element_copies import Copy
from penstock.runtime.generated_loop import GENERATED_FILE_PREFIX, LoopScope, Source


class Accumulation(ABC):
    """One way to add up elements. `copied` makes a copy of what a pane continues to hold."""

    def __init__(self, copied: Copy) -> None:
        self.copied = copied

    @abstractmethod
    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        """What a pane holds after `value`; `held` is None for the first element."""

    @abstractmethod
    def merged(self, mine: Any, theirs: Any) -> Any:
        """What is held after two panes became one."""

    @abstractmethod
    def elements(self, held: Any) -> list[Any] | None:
        """What the window function gets, to keep or change as it likes; None if the pane counts as empty."""

    def last_elements(self, held: Any) -> list[Any] | None:
        """The same for a pane that is dropped right afterwards, so that nothing need be copied."""
        return self.elements(held)

    def all_elements(self, panes: dict[Any, Any], keys: list[Any], is_last: bool) -> list[Any]:
        """What the panes of `keys` amount to, one after the other."""
        elements_of = self.last_elements if is_last else self.elements
        held = [panes[key] for key in keys if panes.get(key) is not None]
        return [element for each in held for element in elements_of(each) or ()]

    def elements_of_nothing(self) -> list[Any]:
        """What the window function gets for a pane that an evictor has emptied."""
        return []

    def add_all(self, panes: dict[Any, Any], keys: list[Any], values: list[Any]) -> list[Any]:
        """Add many elements to the panes of one window, by key; returns the keys whose panes were empty."""
        opened = []
        for key, value in zip(keys, values, strict=True):
            held = panes.get(key)
            if held is None:
                if key not in panes:
                    opened.append(key)
            panes[key] = self.added(held, value, None)
        return opened


def reduce_of(function: ReduceFunction | Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return function.reduce if isinstance(function, ReduceFunction) else function


class _Folding(Accumulation):
    """One value for all elements. They are added in a generated loop, with the user's function in it if it is small."""

    loop_text = """\
def add_all(panes, keys, values):
    opened = []
    get = panes.get
    for key, value in zip(keys, values):
        held = get(key)
        if held is None:
            if key not in panes:
                opened.append(key)
            {begin}
        else:
            panes[key] = {added}
    return opened
"""

    def generate(self, begin: str, function: Callable[..., Any], *arguments: str, inlines: bool, **names: Any) -> None:
        """Make the loop. `begin` adds a first element; further ones are added by `function`."""
        scope = LoopScope(inlines, {"zip": zip, **names})
        self._compile(scope, begin, scope.call("f0", function, *arguments))

    def _compile(self, scope: LoopScope, begin: str, added: str) -> None:
        text = self.loop_text.format(begin=begin.format(added=added), added=added)
        self.loop = scope.compile(Source(text, f"{GENERATED_FILE_PREFIX}window>"))

    def add_all(self, panes: dict[Any, Any], keys: list[Any], values: list[Any]) -> list[Any]:
        try:
            opened: list[Any] = self.loop.run(panes, keys, values)
        except Exception as failure:
            frame = cast(Any, failure.__traceback__).tb_next.tb_frame
            value = frame.f_locals.get("value")
            self.added(panes.get(frame.f_locals.get("key")), value, None)  # Fails again, where the record is seen.
            raise
        return opened


class Reducing(_Folding):
    """One value."""

    def __init__(
        self, function: ReduceFunction | Callable[[Any, Any], Any], copied: Copy, inlines: bool = True
    ) -> None:
        super().__init__(copied)
        self.reduce = reduce_of(function)
        self.generate("panes[key] = value", self.reduce, "held", "value", inlines=inlines)

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return value if held is None else self.reduce(held, value)

    def merged(self, mine: Any, theirs: Any) -> Any:
        return self.reduce(mine, theirs)

    def elements(self, held: Any) -> list[Any] | None:
        return [self.copied(held)]

    def all_elements(self, panes: dict[Any, Any], keys: list[Any], is_last: bool) -> list[Any]:
        copied = self.copied
        return [copied(panes[key]) for key in keys if panes.get(key) is not None]


class ReducingParts(Reducing):
    """One value, of partial results. One that is None adds nothing."""

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return held if value is None else super().added(held, value, timestamp)


class Aggregating(_Folding):
    """One accumulator."""

    def __init__(self, function: AggregateFunction, copied: Copy, inlines: bool = True) -> None:
        super().__init__(copied)
        self.function = function
        create = function.create_accumulator
        begin = "held = create(); panes[key] = {added}"
        self.generate(begin, function.add, "value", "held", inlines=inlines, create=create)

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return self.function.add(value, self.function.create_accumulator() if held is None else held)

    def merged(self, mine: Any, theirs: Any) -> Any:
        return self.function.merge(mine, theirs)

    def elements(self, held: Any) -> list[Any] | None:
        # The result may be the accumulator, or have parts of it, and that keeps changing while the pane stays open.
        result = self.copied(self.function.get_result(held))
        return None if result is None else [result]

    def elements_of_nothing(self) -> list[Any]:
        return [self.function.get_result(self.function.create_accumulator())]


class Merging(Aggregating):
    """One accumulator, to which others are added in place of elements."""

    def __init__(self, function: AggregateFunction, merge: AccumulatorMerge, copied: Copy) -> None:
        Accumulation.__init__(self, copied)
        self.function = function
        merged = merged_text(merge, "held", "value")
        self._merged: Callable[[Any, Any], Any] = eval(f"lambda held, value: {merged}")
        self._compile(LoopScope(False, {"zip": zip}), "panes[key] = value", merged)

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return value if held is None else self._merged(held, value)


def merged_text(merge: AccumulatorMerge, one: str, other: str) -> str:
    """An expression for the accumulator that two become."""
    if not merge.is_tuple:
        return _merged_field(merge.kinds[0], one, other)
    fields = (_merged_field(kind, f"{one}[{at}]", f"{other}[{at}]") for at, kind in enumerate(merge.kinds))
    return f"({', '.join(fields)},)"


def _merged_field(kind: MergeKind, one: str, other: str) -> str:
    match kind:
        case "sum":
            return f"{one} + {other}"
        case "min":
            return f"{other} if {other} < {one} else {one}"
        case "max":
            return f"{other} if {other} > {one} else {one}"
        case "any":
            return one


class Listing(Accumulation):
    """All elements, in order of arrival."""

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        if held is None:
            return [value]
        held.append(value)
        return held

    def merged(self, mine: Any, theirs: Any) -> Any:
        return mine + theirs

    def elements(self, held: Any) -> list[Any] | None:
        return list(map(self.copied, held))

    def last_elements(self, held: Any) -> list[Any] | None:
        elements: list[Any] = held
        return elements

    def add_all(self, panes: dict[Any, Any], keys: list[Any], values: list[Any]) -> list[Any]:
        opened = []
        get = panes.get
        for key, value in zip(keys, values, strict=True):
            held = get(key)
            if held is None:
                if key not in panes:
                    opened.append(key)
                panes[key] = [value]
            else:
                held.append(value)
        return opened


class TimestampedListing(Listing):
    """All elements with their timestamps, for evictors."""

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return super().added(held, TimestampedValue(value, timestamp), timestamp)


def accumulation_of(description: WindowDescription, copied: Copy, inlines: bool = True) -> Accumulation:
    """How the panes of a window operator without evictor add up."""
    if description.reduce_function is not None:
        return Reducing(description.reduce_function, copied, inlines)
    if description.aggregate_function is not None:
        return Aggregating(description.aggregate_function, copied, inlines)
    return Listing(copied)
