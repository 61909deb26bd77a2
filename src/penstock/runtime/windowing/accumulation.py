"""How the elements of a pane (one key in one window) add up: to one value, to an accumulator, or to a list.

The contents of a pane are a plain value, which `panes` stores. As in Flink, None is not a value: a pane that reduces or
aggregates to None is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.window import TimestampedValue
from penstock.graph.descriptions import AccumulatorMerge, MergeKind, WindowDescription
from penstock.runtime.element_copies import Copy
from penstock.runtime.generated_loop import LoopScope, filled, source_of


class Accumulation(ABC):
    """One way to add up elements. `copied` copies a value that is given away while the pane still holds it."""

    def __init__(self, copied: Copy) -> None:
        self.copied = copied

    @abstractmethod
    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        """The contents of a pane after `value` is added to `held`, which is None for the first element."""

    @abstractmethod
    def merged(self, mine: Any, theirs: Any) -> Any:
        """The contents of the pane that two panes are merged into."""

    @abstractmethod
    def elements(self, held: Any) -> list[Any] | None:
        """The elements for the window function, which may keep or change them; None if the pane counts as empty."""

    def last_elements(self, held: Any) -> list[Any] | None:
        """The same for a pane that is dropped right afterwards, so that nothing has to be copied."""
        return self.elements(held)

    def all_elements(self, panes: dict[Any, Any], keys: list[Any], is_last: bool) -> list[Any]:
        """The elements for the window function of all panes of `keys`, one pane after the other."""
        elements_of = self.last_elements if is_last else self.elements
        held = [panes[key] for key in keys if panes.get(key) is not None]
        return [element for each in held for element in elements_of(each) or ()]

    def elements_of_nothing(self) -> list[Any]:
        """The elements for the window function if an evictor has removed all elements of a pane."""
        return []

    @abstractmethod
    def add_all(self, panes: dict[Any, Any], keys: list[Any], values: list[Any]) -> list[Any]:
        """Add many elements to the panes of one window, by key; returns the keys that had no pane."""


def reduce_of(function: ReduceFunction | Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return function.reduce if isinstance(function, ReduceFunction) else function


class _Folding(Accumulation):
    """One value for all elements. A generated loop adds them, with the user's function inlined if it is small."""

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
        """Generate the loop. The statements `begin` add the first element of a pane, and `function` all others."""
        scope = LoopScope(inlines, {"zip": zip, **names})
        self._compile(scope, begin, scope.call("f0", function, *arguments))

    def _compile(self, scope: LoopScope, begin: str, added: str) -> None:
        calling = scope.line(added, "f0")
        lines = filled(self.loop_text, begin=filled(begin, added=calling), added=calling)
        self.loop = scope.compile(source_of(lines, "window"))

    def add_all(self, panes: dict[Any, Any], keys: list[Any], values: list[Any]) -> list[Any]:
        opened: list[Any] = self.loop.run(panes, keys, values)
        return opened


class Reducing(_Folding):
    """The value to which a reduce function reduces the elements."""

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


class Aggregating(_Folding):
    """The accumulator of an aggregate function."""

    def __init__(self, function: AggregateFunction, copied: Copy, inlines: bool = True) -> None:
        super().__init__(copied)
        self.function = function
        create = function.create_accumulator
        begin = "held = create()\npanes[key] = {added}"
        self.generate(begin, function.add, "value", "held", inlines=inlines, create=create)

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return self.function.add(value, self.function.create_accumulator() if held is None else held)

    def merged(self, mine: Any, theirs: Any) -> Any:
        return self.function.merge(mine, theirs)

    def elements(self, held: Any) -> list[Any] | None:
        # The result may be the accumulator or share parts with it, and that changes while the pane stays open.
        result = self.copied(self.function.get_result(held))
        return None if result is None else [result]

    def elements_of_nothing(self) -> list[Any]:
        return [self.function.get_result(self.function.create_accumulator())]


class Merging(Aggregating):
    """The accumulator of an aggregate function, into which other accumulators are merged in place of elements."""

    def __init__(self, function: AggregateFunction, merge: AccumulatorMerge, copied: Copy) -> None:
        Accumulation.__init__(self, copied)
        self.function = function
        merged = merged_text(merge, "held", "value")
        self._merged: Callable[[Any, Any], Any] = eval(f"lambda held, value: {merged}")
        self._compile(LoopScope(False, {"zip": zip}), "panes[key] = value", merged)

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return value if held is None else self._merged(held, value)


def merged_text(merge: AccumulatorMerge, one: str, other: str) -> str:
    """The source of an expression that merges two accumulators."""
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
    """How the panes of a window operator add up if there is no evictor."""
    if description.reduce_function is not None:
        return Reducing(description.reduce_function, copied, inlines)
    if description.aggregate_function is not None:
        return Aggregating(description.aggregate_function, copied, inlines)
    return Listing(copied)
