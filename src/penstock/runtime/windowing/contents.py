"""What a pane (one key in one window) holds: a reduced value, an accumulator, or all elements.

All kinds keep their values in one state table, namespaced by window. As in Flink, None is no value: a pane that
reduces or aggregates to None is empty.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import TimestampedValue, Window
from penstock.runtime.state.keyed import KeyedStateBackend

CONTENTS_TABLE = "_window-contents"

# Values that nobody can change in place.
_IMMUTABLE = (int, float, str, bytes, bool, type(None))


class PaneContents(ABC):
    """The contents of all panes of one operator; each call means the current key's pane of that window."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self.table = backend.table(CONTENTS_TABLE)

    def add(self, window: Window, value: Any, timestamp: int | None) -> None:
        key = self._backend.current_key
        self.table.put(window, key, self.added(self.table.get(window, key), value, timestamp))

    def get(self, window: Window) -> list[Any] | None:
        """The elements for the window function, to keep or change as it likes; None if the pane is empty."""
        held = self.table.get(window, self._backend.current_key)
        return None if held is None else self.elements(held)

    def clear(self, window: Window) -> None:
        self.table.remove(window, self._backend.current_key)

    def merge(self, target: Window, sources: Iterable[Window]) -> None:
        """Move what the `sources` hold into `target`, in their order."""
        key = self._backend.current_key
        for source in sources:
            theirs = self.table.get(source, key)
            if theirs is not None:
                self.table.remove(source, key)
                mine = self.table.get(target, key)
                self.table.put(target, key, theirs if mine is None else self.merged(mine, theirs))

    @abstractmethod
    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        """What is held after `value`; `held` is None for the first element."""

    @abstractmethod
    def merged(self, mine: Any, theirs: Any) -> Any:
        """What is held after two panes became one."""

    @abstractmethod
    def elements(self, held: Any) -> list[Any] | None:
        """What the window function gets for it."""


class ReducedContents(PaneContents):
    """One value per pane."""

    def __init__(self, backend: KeyedStateBackend, reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__(backend)
        self.reduce = reduce

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return value if held is None else self.reduce(held, value)

    def merged(self, mine: Any, theirs: Any) -> Any:
        return self.reduce(mine, theirs)

    def elements(self, held: Any) -> list[Any] | None:
        return [held]


class AggregatedContents(PaneContents):
    """One accumulator per pane."""

    def __init__(self, backend: KeyedStateBackend, function: AggregateFunction) -> None:
        super().__init__(backend)
        self.function = function

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return self.function.add(value, self.function.create_accumulator() if held is None else held)

    def merged(self, mine: Any, theirs: Any) -> Any:
        return self.function.merge(mine, theirs)

    def elements(self, held: Any) -> list[Any] | None:
        result = self.function.get_result(held)
        if result is held and not isinstance(held, _IMMUTABLE):
            # An accumulator that is its own result goes on changing while the pane stays open.
            result = copy.deepcopy(result)
        return None if result is None else [result]


class ListedContents(PaneContents):
    """All elements, in order of arrival."""

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        if held is None:
            return [value]
        held.append(value)
        return held

    def merged(self, mine: Any, theirs: Any) -> Any:
        return mine + theirs

    def elements(self, held: Any) -> list[Any] | None:
        return list(held)


class TimestampedContents(ListedContents):
    """All elements with their timestamps, for evictors."""

    def added(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return super().added(held, TimestampedValue(value, timestamp), timestamp)

    def replace(self, window: Window, elements: list[TimestampedValue]) -> None:
        """Keep only what the evictor left."""
        if elements:
            self.table.put(window, self._backend.current_key, elements)
        else:
            self.clear(window)
