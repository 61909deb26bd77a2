"""Which snapshot files each subtask is restored from after the last complete epoch."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.runtime.task_host import StateHandle, SubtaskOrder, TaskAck, following_handles

_MOST_DELTAS = 20
_SMALL_BASE = 64 * 1024


class HandleBook:
    """Handles by (vertex, subtask), moved on only when every subtask has acknowledged an epoch."""

    def __init__(self) -> None:
        self._handles: dict[tuple[int, int], tuple[StateHandle, ...]] = {}

    def orders(self) -> dict[tuple[int, int], SubtaskOrder]:
        return {
            subtask: SubtaskOrder(handles, wants_full(handles)) for subtask, handles in self._handles.items() if handles
        }

    def names(self) -> set[str]:
        """The files that count."""
        return {handle.name for handles in self._handles.values() for handle in handles}

    def complete(self, acks: Iterable[TaskAck]) -> list[str]:
        """Take over an epoch's snapshots; returns the files that nothing refers to any more."""
        unused: list[str] = []
        for ack in acks:
            subtask = (ack.vertex, ack.subtask)
            before = self._handles.get(subtask, ())
            after = following_handles(before, ack.handle)
            self._handles[subtask] = after
            kept = {handle.name for handle in after}
            unused.extend(handle.name for handle in before if handle.name not in kept)
        return unused


def wants_full(handles: tuple[StateHandle, ...]) -> bool:
    """True when the deltas have outgrown their base: restoring would read more than a new full snapshot writes."""
    base = sum(handle.size for handle in handles if handle.is_full)
    deltas = [handle.size for handle in handles if not handle.is_full]
    return len(deltas) >= _MOST_DELTAS or sum(deltas) > max(base, _SMALL_BASE)
