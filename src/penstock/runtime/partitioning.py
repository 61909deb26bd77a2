"""Deals a batch out to the subtasks downstream."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from penstock.common.exceptions import InvalidProgramError
from penstock.common.own_copies import own_copy
from penstock.datastream.fields import DeclaredKey
from penstock.graph import partitioners as p
from penstock.runtime.batch import Batch, Timestamps, call_each
from penstock.runtime.generated_loop import EachLoop
from penstock.runtime.hashable_keys import hashable_keys
from penstock.runtime.key_groups import KeyOwners
from penstock.runtime.key_hashing import check_keys
from penstock.runtime.nan_keys import may_hold_nan, with_one_nan

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

Dealt = list[tuple[int, Batch]]
"""For each target its number, among the connected subtasks, and its part of the batch in order."""
DealtColumns = Sequence["tuple[int, Columns | Batch]"]
"""The same for elements that were in columns, and may still be."""


class Dealer:
    """Deals batches by one partitioner to `targets` connected subtasks."""

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        raise NotImplementedError

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> DealtColumns | None:
        """The same for elements in columns; None if `deal` must be called instead, and no function has been called.

        `values` are the same elements, if they exist outside of columns, too.
        """
        return None

    def call_functions(self) -> None:
        """Call the user's functions, also where a generated loop could do their work."""

    def memory(self) -> Any:
        """What the dealer needs to continue in another process."""
        return None

    def restore(self, memory: Any) -> None:
        """Continue from what `memory` returned."""


class ToOne(Dealer):
    """Everything to the first connected subtask: forward, global, and rebalance, rescale or shuffle with one target."""

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [(0, Batch(values, timestamps))]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> DealtColumns | None:
        return [(0, columns)]


class ToAll(Dealer):
    def __init__(self, targets: int) -> None:
        self._targets = targets

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [(target, Batch(values, timestamps)) for target in range(self._targets)]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> DealtColumns | None:
        return [(target, columns) for target in range(self._targets)]


class RoundRobin(Dealer):
    """One record to each target in turn, from where the last batch ended: each target gets a stride of the batch."""

    def __init__(self, targets: int) -> None:
        self._targets = targets
        self._next = 0

    def deal(self, values: list[Any], timestamps: Timestamps | None) -> Dealt:
        return [
            (target, Batch(values[part], None if timestamps is None else timestamps[part]))
            for target, part in self._parts(len(values))
        ]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> DealtColumns | None:
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
    """To the target that a function chooses for each record."""

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
        self._select = key_selector
        self._item = _item_of(key_selector, self._keys_of)
        self._item_kinds = _kinds_kept_by(key_selector)
        """The kinds of columns that can be keys as they are."""
        self._owners = KeyOwners(max_parallelism, targets)

    def call_functions(self) -> None:
        self._keys_of.inlines = False
        self._item = _item_of(self._select, self._keys_of)

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
            # There is only one target, but a value that cannot be a key must fail here, where the error names key_by.
            different = set(keys)
        except TypeError:
            keys = hashable_keys(keys)
            different = set(keys)
        check_keys(different)
        return [(0, Batch(values, timestamps, with_one_nan(keys) if may_hold_nan(different) else keys))]

    def deal_columns(self, columns: Columns, values: list[Any] | None = None) -> DealtColumns | None:
        item = None if self._item is None else columns.item(self._item)
        if item is None or not columns.kinds.startswith("("):
            return self._deal_with_keys(columns, columns.batch().values if values is None else values)
        kind, at = item
        return self._deal_keyed(replace(columns, key=at)) if kind in self._item_kinds else None

    def _deal_with_keys(self, columns: Columns, values: list[Any]) -> DealtColumns:
        """Deal elements in columns if their keys can be a column, too, and otherwise one by one."""
        keys = self.keys_of(values)
        # The selector has been called: that must not happen twice.
        return self.deal_keyed_columns(keys, columns) or self.deal_keyed(keys, values, columns.batch().timestamps)

    def deal_keyed_columns(self, keys: list[Any], columns: Columns) -> DealtColumns | None:
        """Deal elements whose keys are known; None if the keys cannot be a column."""
        from penstock.runtime.columns import columns_of

        made = columns_of(keys)
        if made is None or made.kinds not in _KINDS_OF_KEYS:
            return None
        return self._deal_keyed(replace(columns, key=made.arrays[0]))

    def _deal_keyed(self, keyed: Columns) -> DealtColumns:
        if self._targets == 1:
            return [(0, keyed)]
        import numpy as np

        keys = keyed.arrays[keyed.key] if isinstance(keyed.key, int) else keyed.key
        owners = self._owners.of_column(keys).astype(np.uint16)
        in_order = np.argsort(owners, kind="stable")  # By target, and for each target in order of arrival.
        ends = np.cumsum(np.bincount(owners, minlength=self._targets)).tolist()
        shares = enumerate(zip([0, *ends], ends, strict=False))
        return [(target, keyed.taken(in_order[start:end])) for target, (start, end) in shares if start < end]


_KINDS_OF_KEYS = ("q", "U")
"""Integers and strings. Keys in other columns, such as floats that may be NaN, are dealt one by one."""


def _kinds_kept_by(key_selector: Callable[[Any], Any]) -> tuple[str, ...]:
    if not isinstance(key_selector, DeclaredKey):
        return _KINDS_OF_KEYS
    return tuple(kind for kind, kept in (("q", int), ("U", str)) if key_selector.kept_kind is kept)


def _item_of(key_selector: Callable[[Any], Any], keys_of: EachLoop) -> int | None:
    """The index of the item that a key selector takes from a tuple; None if it does anything else."""
    if isinstance(key_selector, DeclaredKey):
        return _item_of(key_selector.select, EachLoop(key_selector.select, "key selection", inlines=keys_of.inlines))
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
    """`targets` is the number of connected subtasks; `max_parallelism` is that of the receiving vertex."""
    match partitioner:
        case p.KeyGroupStreamPartitioner():
            return ByKeyGroup(targets, max_parallelism, own_copy(partitioner.key_selector), partitioner.made_at)
        case p.CustomPartitioner():
            return ByNumber(targets, _checked_custom(own_copy(partitioner), targets))
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
