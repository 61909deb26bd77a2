"""What the sources here have in common: an enumerator that looks for splits and deals them out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import MissingInputError
from penstock.datastream.connectors.source_v2 import SplitEnumerator, SplitEnumeratorContext
from penstock.datastream.connectors.support.split_reading import OffsetSplit

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DealtSplits:
    """What a checkpoint keeps of the enumerator."""

    unassigned: tuple[OffsetSplit, ...] = ()
    known: frozenset[str] = frozenset()
    """The names of all splits ever found; kept only if splits are looked for again."""
    has_looked: bool = False
    handed_out: int = 0
    """How many splits readers have got so far; 0 in checkpoints of former versions."""


class SplitsEnumerator(SplitEnumerator[OffsetSplit, DealtSplits]):
    """Finds splits with `find`: once, or every `period_ms`.

    Readers that ask get one split at a time, so quick readers get more of them. With `deals_at_once` every split goes
    to a reader as soon as it is found, and all readers get about the same number. Where splits have no end, or are
    looked for again, readers never learn that there are no more.

    Where splits are looked for repeatedly, a search that fails with an error of `looks_again_after` is only logged, as
    in Flink; except for the first one, which may never succeed.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext[OffsetSplit],
        find: Callable[[], Iterable[OffsetSplit]],
        period_ms: int | None = None,
        deals_at_once: bool = False,
        splits_end: bool = True,
        former: DealtSplits | None = None,
        known_by: Callable[[OffsetSplit], str] = OffsetSplit.split_id,
        looks_again_after: tuple[type[Exception], ...] = (),
    ) -> None:
        former = former or DealtSplits()
        self._context = context
        self._find = find
        self._period_ms = period_ms
        self._deals_at_once = deals_at_once
        self._splits_end = splits_end
        self._known_by = known_by
        self._looks_again_after = looks_again_after
        self._unassigned = list(former.unassigned)
        self._known = set(former.known)
        self._has_looked = former.has_looked
        self._waiting: dict[int, None] = {}
        """Readers that wait for a split, in the order in which they asked."""
        self._dealt = len(self._known)
        self._handed_out = former.handed_out
        self._complete: set[int] = set()
        """Readers that have read all they get."""

    def start(self) -> None:
        if self._period_ms is not None:
            self._context.call_async(lambda: list(self._find()), self._found, 0, self._period_ms)
        elif not self._has_looked or not self._splits_end:
            self._context.call_async(lambda: list(self._find()), self._found)

    def _found(self, splits: Any, error: BaseException | None) -> None:
        if error is not None:
            if isinstance(error, FileNotFoundError) and not self._has_looked:
                raise MissingInputError(str(error)) from error
            if self._period_ms is None or not self._has_looked or not isinstance(error, self._looks_again_after):
                raise error
            _log.warning("looking for new splits failed and will be repeated in %d ms: %s", self._period_ms, error)
            return
        new = [split for split in splits if self._known_by(split) not in self._known]
        if self._period_ms is not None or not self._splits_end:
            self._known.update(map(self._known_by, new))
        self._has_looked = True
        self._unassigned.extend(new)
        self._deal()

    def _deal(self) -> None:
        if self._deals_at_once:
            for split in self._unassigned:
                self._context.assign_split(split, self._dealt % self._context.current_parallelism())
                self._dealt += 1
            self._unassigned.clear()
            for subtask in self._context.registered_readers() if self._has_all() else ():
                self._context.signal_no_more_splits(subtask)
            return
        while self._waiting and (self._unassigned or self._has_all()):
            subtask = next(iter(self._waiting))
            del self._waiting[subtask]
            self._answer(subtask)

    def _answer(self, subtask: int) -> None:
        if self._unassigned:
            self._context.assign_split(self._unassigned.pop(0), subtask)
            self._handed_out += 1
        else:
            self._context.signal_no_more_splits(subtask)
            self._complete.add(subtask)

    def share_read(self) -> float | None:
        if not self._has_all() or self._deals_at_once:
            return None
        total = self._handed_out + len(self._unassigned)
        if total == 0:
            return None  # Restored readers have what there is, or there is nothing.
        # A reader that asks for a split has finished the one before, unless it has several. The last one counts as
        # being read until the end.
        reading = max(1, len(self._context.registered_readers() - self._complete))
        return max(0, self._handed_out - reading) / total

    def _has_all(self) -> bool:
        return self._has_looked and self._period_ms is None and self._splits_end

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self._waiting[subtask_id] = None
        self._deal()

    def add_splits_back(self, splits: list[OffsetSplit], subtask_id: int) -> None:
        self._unassigned = [*splits, *self._unassigned]
        self._handed_out = max(0, self._handed_out - len(splits))

    def add_reader(self, subtask_id: int) -> None:
        self._deal()

    def snapshot_state(self, checkpoint_id: int) -> DealtSplits:
        return DealtSplits(tuple(self._unassigned), frozenset(self._known), self._has_looked, self._handed_out)
