"""Operator state: lists that are redistributed when the parallelism changes, and broadcast maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    StateDescriptor,
)

Distribution = Literal["split", "union", "broadcast"]

Saved = dict[str, tuple[Distribution, Any]]
"""State name -> how it is distributed, and its items (a list, or the broadcast dictionary)."""


class OperatorListState(ListState[Any]):
    """A list that belongs to the subtask, not to a key."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def get(self) -> Iterator[Any]:
        return iter(list(self.items))

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        self.items.append(value)

    def add_all(self, values: list[Any]) -> None:
        self.items.extend(values)

    def update(self, values: list[Any]) -> None:
        self.items[:] = values

    def clear(self) -> None:
        self.items.clear()


class HeapBroadcastState(BroadcastState[Any, Any]):
    """A map that every subtask holds in full."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    @property
    def dictionary(self) -> dict[Any, Any]:
        """For lookups in generated loops, which may keep it: it is never replaced."""
        return self.entries

    def get(self, key: Any) -> Any:
        return self.entries.get(key)

    def put(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def put_all(self, dict_value: Any) -> None:
        self.entries.update(dict_value)

    def remove(self, key: Any) -> None:
        self.entries.pop(key, None)

    def contains(self, key: Any) -> bool:
        return key in self.entries

    def is_empty(self) -> bool:
        return not self.entries

    def items(self) -> list[tuple[Any, Any]]:
        return list(self.entries.items())

    def keys(self) -> list[Any]:
        return list(self.entries)

    def values(self) -> list[Any]:
        return list(self.entries.values())

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def clear(self) -> None:
        self.entries.clear()


class OperatorStateBackend(OperatorStateStore):
    """The operator state of one operator in one subtask."""

    def __init__(self, operator_name: str) -> None:
        self.operator_name = operator_name
        self._lists: dict[str, tuple[Distribution, OperatorListState]] = {}
        self._broadcast: dict[str, HeapBroadcastState] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "split")

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._list(state_descriptor, "union")

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> HeapBroadcastState:
        self._check_free(state_descriptor, self._lists)
        return self._broadcast.setdefault(state_descriptor.name, HeapBroadcastState())

    def get_registered_state_names(self) -> set[str]:
        return set(self._lists)

    def get_registered_broadcast_state_names(self) -> set[str]:
        return set(self._broadcast)

    def _list(self, descriptor: ListStateDescriptor, distribution: Distribution) -> ListState[Any]:
        self._check_free(descriptor, self._broadcast)
        known, state = self._lists.setdefault(descriptor.name, (distribution, OperatorListState()))
        if known != distribution:
            raise StateAccessError(
                f"operator '{self.operator_name}': list state '{descriptor.name}' is distributed by '{known}' already "
                f"and cannot also be '{distribution}'; give each state a name of its own"
            )
        return state

    def _check_free(self, descriptor: StateDescriptor, others: dict[str, Any]) -> None:
        if descriptor.name in others:
            raise StateAccessError(
                f"operator '{self.operator_name}': the name '{descriptor.name}' is taken by another kind of operator "
                f"state; give each state a name of its own"
            )

    def snapshot(self) -> Saved:
        saved: Saved = {name: (mode, list(state.items)) for name, (mode, state) in self._lists.items()}
        saved.update({name: ("broadcast", dict(state.entries)) for name, state in self._broadcast.items()})
        return saved

    def restore(self, saved: Saved) -> None:
        """Take over the state that this subtask saved, or its share of all state after a change of parallelism."""
        for name, (distribution, items) in saved.items():
            if distribution == "broadcast":
                state = HeapBroadcastState()
                state.entries = dict(items)
                self._broadcast[name] = state
            else:
                listed = OperatorListState()
                listed.items = list(items)
                self._lists[name] = (distribution, listed)

    def __len__(self) -> int:
        return sum(len(state.items) for _, state in self._lists.values()) + sum(
            len(state.entries) for state in self._broadcast.values()
        )


def share_of(former: list[Saved], subtask: int, parallelism: int) -> Saved:
    """A subtask's share of the state that all former subtasks saved. `former` is in the order of the subtasks.

    The rules are Flink's: items of split lists are dealt round robin, and every subtask gets all items of union lists
    and one copy of broadcast state.
    """
    share: Saved = {}
    for name, (distribution, _) in ((name, saved) for each in former for name, saved in each.items()):
        if name in share:
            continue
        saved = [each[name][1] for each in former if name in each]
        if distribution == "broadcast":
            share[name] = distribution, saved[subtask % len(saved)]
        else:
            items = [item for each in saved for item in each]
            share[name] = distribution, items if distribution == "union" else items[subtask::parallelism]
    return share
