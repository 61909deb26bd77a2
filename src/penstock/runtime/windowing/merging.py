"""Which windows of a key are open, and where their contents are: for windows that merge, and for those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.window import MergingWindowAssigner, Window
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE

MERGING_TABLE = "_merging-window-set"

OnMerge = Callable[[Window, list[Window], Window, list[Window]], None]
"""Called with: the merged window, the windows it replaces, the window that holds the contents, and those whose
contents must move there."""


class PlainWindows:
    """Windows that never merge: each holds its own contents."""

    def add(self, window: Window) -> Window:
        return window

    def state_window(self, window: Window) -> Window | None:
        return window

    def retire(self, window: Window) -> None:
        """Nothing is remembered."""


class MergingWindows:
    """The open windows of the current key, each with its state window.

    When windows merge, the contents stay under one of the original windows, the state window, so that a growing
    session does not move its contents around. Open windows never touch each other: those that did were merged.
    """

    def __init__(
        self, assigner: MergingWindowAssigner[Any, Any], backend: KeyedStateBackend, on_merge: OnMerge
    ) -> None:
        self._assigner = assigner
        self._backend = backend
        self._table = backend.table(MERGING_TABLE)
        self._on_merge = on_merge

    def add(self, window: Window) -> Window:
        """Open `window`, merging it with the open windows it meets; returns the window it became part of."""
        mapping = self._mapping()
        if window in mapping:
            return window
        found = _Merges()
        self._assigner.merge_windows([*mapping, window], found)
        result, is_merged = window, False
        for merged, members in found.merges:
            if window in members:
                members.remove(window)
                result, is_merged = merged, True
            self._merge(mapping, merged, members)
        if not is_merged:
            mapping[window] = window
        self._put(mapping)
        return result

    def state_window(self, window: Window) -> Window | None:
        """Where the contents of an open window are; None if it is not open."""
        return self._mapping().get(window)

    def retire(self, window: Window) -> None:
        """Forget a window that is gone."""
        mapping = self._mapping()
        if mapping.pop(window, None) is not None:
            self._put(mapping)

    def _merge(self, mapping: dict[Window, Window], merged: Window, members: list[Window]) -> None:
        state_windows = [mapping.pop(member) for member in members]
        mapping[merged] = state_windows[0]
        if members != [merged]:
            self._on_merge(merged, members, state_windows[0], state_windows[1:])

    def _mapping(self) -> dict[Window, Window]:
        mapping: dict[Window, Window] | None = self._table.get(VOID_NAMESPACE, self._backend.current_key)
        return {} if mapping is None else mapping

    def _put(self, mapping: dict[Window, Window]) -> None:
        if mapping:
            self._table.put(VOID_NAMESPACE, self._backend.current_key, mapping)
        else:
            self._table.remove(VOID_NAMESPACE, self._backend.current_key)


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Collects what `merge_windows` reports."""

    def __init__(self) -> None:
        self.merges: list[tuple[Window, list[Window]]] = []

    def merge(self, to_be_merged: Iterable[Window], merge_result: Window) -> None:
        self.merges.append((merge_result, list(to_be_merged)))
