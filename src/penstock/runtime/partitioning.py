"""Deals a batch out to the subtasks downstream."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from penstock.common.exceptions import InvalidProgramError
from penstock.graph import partitioners as p
from penstock.runtime.batch import Batch, Timestamps, call_each
from penstock.runtime.generated_loop import EachLoop
from penstock.runtime.hashable_keys import hashable_keys
from penstock.runtime.key_groups import KeyOwners, check_kind
from penstock.runtime.nan_keys import may_hold_nan, with_one_nan

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

Dealt = list[tuple[int, Batch]]
"""Target number (among the connected ones) and its part of the batch, order kept."""


class Dealer:
    """Deals batches by one partitioner to `targets` connected subtasks."""

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        raise NotImplementedError

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> list[tuple[int, Columns]] | None:
        """The same for elements that have columns; None if these must be dealt one by one.

        `values` are the elements, where they are known.
        """
        return None

    def memory(self) -> Any:
        """Where to continue in the next epoch."""
        return None

    def restore(self, memory: Any) -> None:
        """Take back what `memory` gave."""


class ToOne(Dealer):
    """Everything to the first connected subtask: forward, global, and every partitioner with a single target."""

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [(0, Batch(values, timestamps))]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> list[tuple[int, Columns]] | None:
        return [(0, columns)]


class ToAll(Dealer):
    def __init__(self, targets: int) -> None:
        self._targets = targets

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [(target, Batch(values, timestamps)) for target in range(self._targets)]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> list[tuple[int, Columns]] | None:
        return [(target, columns) for target in range(self._targets)]


class RoundRobin(Dealer):
    """One record after the other, continued where the last batch ended; a stride of the list for each target."""

    def __init__(self, targets: int) -> None:
        self._targets = targets
        self._next = 0

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [
            (target, Batch(values[part], None if timestamps is None else timestamps[part]))
            for target, part in self._parts(len(values))
        ]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> list[tuple[int, Columns]] | None:
        return [(target, columns.taken(part)) for target, part in self._parts(len(columns))]

    def _parts(self, records: int) -> list[tuple[int, slice]]:
        first, self._next = self._next, (self._next + records) % self._targets
        return [
            ((first + offset) % self._targets, slice(offset, None, self._targets))
            for offset in range(min(self._targets, records))
        ]

    def memory(self) -> Any:
        return self._next

    def restore(self, memory: Any) -> None:
        self._next = memory


class ByNumber(Dealer):
    """To the target that a function gives for each record."""

    def __init__(self, targets: int, choose: Callable[[Any], int]) -> None:
        self._targets = targets
        self._choose = choose

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return _deal_by(call_each(self._choose, values), self._targets, values, timestamps, None)


class ByKeyGroup(Dealer):
    """To the owner of the key's key group. The keys travel with the records, so that they are computed once."""

    def __init__(
        self, targets: int, max_parallelism: int, key_selector: Callable[[Any], Any], made_at: str | None = None
    ) -> None:
        self.made_at = made_at
        """The line of the program that chose the key, which errors name."""
        self._targets = targets
        self._keys_of = EachLoop(key_selector, "key selection")
        self._item = _item_of(key_selector, self._keys_of)
        self._owners = KeyOwners(max_parallelism, targets)

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return self.deal_keyed(self.keys_of(values), values, timestamps)

    def keys_of(self, values: list[Any]) -> list[Any]:
        """The keys of values; a selector that fails is reported as that of its key_by."""
        return self._keys_of(values)

    def deal_keyed(self, keys: list[Any], values: list[Any], timestamps: Timestamps | None) -> Dealt:
        """Deal values whose keys are known."""
        if self._targets > 1:
            try:
                owners = self._owners.of(keys)
            except TypeError:
                keys = hashable_keys(keys)
                owners = self._owners.of(keys)
            keys = with_one_nan(keys) if self._owners.take_nan_seen() else keys
            return _deal_by(owners, self._targets, values, timestamps, keys)
        try:
            different = set(keys)  # One target takes all, but a key that cannot be one must fail here, at its key_by.
        except TypeError:
            keys = hashable_keys(keys)
            different = set(keys)
        for kind in set(map(type, different)):
            check_kind(kind)
        return [(0, Batch(values, timestamps, with_one_nan(keys) if may_hold_nan(different) else keys))]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> list[tuple[int, Columns]] | None:
        item = None if self._item is None else columns.item(self._item)
        if item is None or not columns.kinds.startswith("("):
            return self.deal_keyed_columns(self.keys_of(columns.batch().values if values is None else values), columns)
        kind, at = item
        return self._deal_keyed(replace(columns, key=at)) if kind in _KINDS_OF_KEYS else None

    def deal_keyed_columns(self, keys: list[Any], columns: Columns) -> list[tuple[int, Columns]] | None:
        """The same for elements whose keys are known."""
        from penstock.runtime.columns import columns_of

        made = columns_of(keys)
        if made is None or made.kinds not in _KINDS_OF_KEYS:
            return None
        return self._deal_keyed(replace(columns, key=made.arrays[0]))

    def _deal_keyed(self, keyed: Columns) -> list[tuple[int, Columns]]:
        if self._targets == 1:
            return [(0, keyed)]
        import numpy as np

        keys = keyed.arrays[keyed.key] if isinstance(keyed.key, int) else keyed.key
        owners = self._owners.of_column(keys).astype(np.uint16)
        in_order = np.argsort(owners, kind="stable")  # By target, and for each as they came
        ends = np.cumsum(np.bincount(owners, minlength=self._targets)).tolist()
        shares = enumerate(zip([0, *ends], ends, strict=False))
        return [(target, keyed.taken(in_order[start:end])) for target, (start, end) in shares if start < end]


_KINDS_OF_KEYS = ("q", "U")
"""Integers and texts. Others may hold a NaN, which is a key like no other, or cannot be keys."""


def _item_of(key_selector: Callable[[Any], Any], keys_of: EachLoop) -> int | None:
    """The number of the item that a key selector takes from a tuple, if it does that and nothing else."""
    taken: tuple[Any, ...] = cast(Any, key_selector).__reduce__()[1] if isinstance(key_selector, itemgetter) else ()
    if len(taken) == 1 and type(taken[0]) is int:
        return taken[0]
    match = re.fullmatch(r"\(?value\[(-?\d+)\]\)?", keys_of.expression)
    return None if match is None else int(match[1])


def _deal_by(
    choices: list[int], targets: int, values: list[Any], timestamps: Timestamps | None, keys: list[Any] | None
) -> Dealt:
    picked: list[list[int]] = [[] for _ in range(targets)]
    for at, choice in enumerate(choices):
        picked[choice].append(at)
    return [
        (
            target,
            Batch(
                [values[at] for at in places],
                None if timestamps is None else [timestamps[at] for at in places],
                None if keys is None else [keys[at] for at in places],
            ),
        )
        for target, places in enumerate(picked)
        if places
    ]


def build_dealer(partitioner: p.StreamPartitioner, targets: int, max_parallelism: int) -> Dealer:
    """`targets` counts the connected subtasks; `max_parallelism` is that of the receiving vertex."""
    match partitioner:
        case p.KeyGroupStreamPartitioner():
            return ByKeyGroup(targets, max_parallelism, partitioner.key_selector, partitioner.made_at)
        case p.CustomPartitioner():
            return ByNumber(targets, _checked_custom(partitioner, targets))
        case p.BroadcastPartitioner():
            return ToAll(targets)
        case p.GlobalPartitioner() | p.ForwardPartitioner():
            return ToOne()
        case p.ShufflePartitioner() if targets > 1:
            return ByNumber(targets, lambda _: random.randrange(targets))
    return RoundRobin(targets) if targets > 1 else ToOne()


def _checked_custom(partitioner: p.CustomPartitioner, targets: int) -> Callable[[Any], int]:
    select, partition = partitioner.key_selector, partitioner.partitioner

    def choose(value: Any) -> int:
        key = select(value)
        target = partition(key, targets)
        if not isinstance(target, int) or not 0 <= target < targets:
            raise InvalidProgramError(
                f"the custom partitioner returned {target!r} for key {key!r}; it must return a number from 0 to "
                f"{targets - 1}"
            )
        return target

    return choose
