"""How an operator stores its panes: those of windows that never merge, and those of windows that do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.window import MergingWindowAssigner, Window
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.windowing.accumulation import Accumulation

CONTENTS_TABLE = "_window-contents"
MERGING_TABLE = "_merging-windows"

OnMerge = Callable[[Window, list[Window]], None]
"""Called with the merged window and the windows it replaces."""


class Panes(ABC):
    """The panes of the current key, by window. The contents of an empty pane are None."""

    @abstractmethod
    def add_window(self, window: Window) -> Window:
        """Open `window`; returns the window that it was merged into, or itself."""

    @abstractmethod
    def is_open(self, window: Window) -> bool:
        """False if `window` does not exist any more, because it was merged into another one. Its timers are ignored."""

    @abstractmethod
    def get(self, window: Window) -> Any: ...

    @abstractmethod
    def put(self, window: Window, held: Any) -> None: ...

    @abstractmethod
    def clear(self, window: Window) -> None:
        """Empty the pane; its window stays open."""

    @abstractmethod
    def retire(self, window: Window) -> None:
        """Drop the pane, and close its window."""


class PlainPanes(Panes):
    """Panes of windows that never merge. The window is the namespace of its panes; empty panes are not stored."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self.table = backend.table(CONTENTS_TABLE)

    def add_window(self, window: Window) -> Window:
        return window

    def is_open(self, window: Window) -> bool:
        return True

    def get(self, window: Window) -> Any:
        return self.table.get(window, self._backend.current_key)

    def put(self, window: Window, held: Any) -> None:
        self.table.put(window, self._backend.current_key, held)

    def clear(self, window: Window) -> None:
        self.table.remove(window, self._backend.current_key)

    def retire(self, window: Window) -> None:
        self.clear(window)


class MergingPanes(Panes):
    """Panes of windows that merge: one entry per key, which maps its open windows to their contents.

    Open windows of a key never touch each other: those that did were merged. After a purge, a window is still open, and
    its contents are None.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        assigner: MergingWindowAssigner[Any, Any],
        accumulation: Accumulation,
        on_merge: OnMerge,
    ) -> None:
        self._backend = backend
        self._assigner = assigner
        self._accumulation = accumulation
        self._on_merge = on_merge
        self.table = backend.table(MERGING_TABLE)

    def add_window(self, window: Window) -> Window:
        panes = self._panes()
        if window in panes:
            return window
        found = _Merges()
        self._assigner.merge_windows([*panes, window], found)
        panes[window] = None
        result = window
        for merged, members in found.merges:
            self._merge(panes, merged, members, window)
            if window in members:
                result = merged
        self._put_panes(panes)
        return result

    def _merge(self, panes: dict[Window, Any], merged: Window, members: list[Window], added: Window) -> None:
        held = None
        for member in members:
            theirs = panes.pop(member)
            if held is None or theirs is None:
                held = theirs if held is None else held
            else:
                held = self._accumulation.merged(held, theirs)
        panes[merged] = held
        # The added window is new: it has no timers and no trigger state to merge.
        replaced = [member for member in members if member != added]
        if replaced != [merged]:
            self._on_merge(merged, replaced)

    def is_open(self, window: Window) -> bool:
        return window in self._panes()

    def get(self, window: Window) -> Any:
        return self._panes().get(window)

    def put(self, window: Window, held: Any) -> None:
        panes = self._panes()
        panes[window] = held
        self._put_panes(panes)

    def clear(self, window: Window) -> None:
        self.put(window, None)

    def retire(self, window: Window) -> None:
        panes = self._panes()
        panes.pop(window, None)
        self._put_panes(panes)

    def _panes(self) -> dict[Window, Any]:
        panes: dict[Window, Any] | None = self.table.get(VOID_NAMESPACE, self._backend.current_key)
        return {} if panes is None else panes

    def _put_panes(self, panes: dict[Window, Any]) -> None:
        if panes:
            self.table.put(VOID_NAMESPACE, self._backend.current_key, panes)
        else:
            self.table.remove(VOID_NAMESPACE, self._backend.current_key)


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Collects what `merge_windows` reports."""

    def __init__(self) -> None:
        self.merges: list[tuple[Window, list[Window]]] = []

    def merge(self, to_be_merged: Iterable[Window], merge_result: Window) -> None:
        self.merges.append((merge_result, list(to_be_merged)))
