"""The driver's side of sources: what is there to read, and who reads what in the next epoch."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.common import config_keys as keys
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.graph.descriptions import (
    CollectionSourceDescription,
    FunctionSourceDescription,
    SequenceSourceDescription,
    SocketSourceDescription,
    SourceDescription,
    SplitSourceDescription,
)
from penstock.jobmaster.region.epoch_pace import EpochPace
from penstock.jobmaster.sources.received_coordinator import function_coordinator, socket_coordinator
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.jobmaster.sources.split_coordinator import SplitSourceCoordinator
from penstock.runtime.sources import SourceAssignment, SourceReport

_LONGEST_STEP_MS = 5000
_LARGE_STEP = 1_000_000


class SourceCoordinator(Protocol):
    """One source of a job. `position` is what a checkpoint keeps of it."""

    def start(self) -> None: ...

    def has_work(self) -> bool:
        """True if an epoch would bring something new: records, or the end of the source."""

    def plan(self, epoch: int, is_checkpoint: bool) -> dict[int, SourceAssignment]:
        """The next epoch's part of each subtask that has one; moves the position on.

        `is_checkpoint`: the epoch will end with a checkpoint. One that brings the end of all sources may do so, too.
        """

    def epoch_complete(self, reports: Mapping[int, SourceReport], duration_ms: int) -> None:
        """The epoch is complete, with what the subtasks have to say; asked for its position after that."""

    @property
    def position(self) -> Any: ...

    def rewind(self, position: Any) -> None:
        """Go back to a position of this run, after a failure."""

    def restore(self, position: Any, is_exact: bool) -> None:
        """Begin where another run of the job stood; called before `start`.

        Unless `is_exact`, the parallelism may have changed, and subtasks do not remember that their part has ended: a
        source that had ended brings nothing but its end again.
        """

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        """Plan the end now: the job is drained. What can be read again is left unread, as by `suspend`."""

    def suspend(self, epoch: int) -> dict[int, SourceAssignment]:
        """Plan the last epoch before the job stops with a savepoint; what can be read again later is left.

        Nothing more is taken from outside, until `resume` or `rewind`.
        """

    def resume(self) -> None:
        """The job continues after `suspend`: its savepoint could not be written."""

    def checkpoint_complete(self, position: Any) -> None:
        """Nothing before `position` will be asked for again."""

    @property
    def is_exhausted(self) -> bool:
        """True once the end was planned."""

    def share_read(self) -> float | None:
        """How much of the source was read, from 0 to 1; None if that is not known."""

    def check(self) -> None:
        """Raise if the source has failed."""

    def stop(self) -> None: ...


class KnownSourceCoordinator:
    """A bounded source that is all there from the start, so that nothing runs and nothing can fail."""

    def __init__(self, pace: EpochPace) -> None:
        self._pace = pace

    def start(self) -> None:
        """Nothing to wait for."""

    def has_work(self) -> bool:
        return not self.is_exhausted

    def suspend(self, epoch: int) -> dict[int, SourceAssignment]:
        return {}

    def resume(self) -> None:
        """It was never held back."""

    def epoch_complete(self, reports: Mapping[int, SourceReport], duration_ms: int) -> None:
        self._pace.epoch_completed(duration_ms, self._pace.records, has_more=not self.is_exhausted)

    def checkpoint_complete(self, position: Any) -> None:
        """There is nothing to free."""

    @property
    def is_exhausted(self) -> bool:
        raise NotImplementedError

    def share_read(self) -> float | None:
        raise NotImplementedError

    def check(self) -> None:
        """Cannot fail."""

    def stop(self) -> None:
        """Nothing runs."""


class CollectionSourceCoordinator(KnownSourceCoordinator):
    """The elements are in the program, and one subtask reads them; the position is how far it is."""

    def __init__(self, values: Sequence[Any], pace: EpochPace) -> None:
        super().__init__(pace)
        self._values = values
        self.position: tuple[int, bool] = (0, False)
        """Elements read, and whether the end was planned."""

    def plan(self, epoch: int, is_checkpoint: bool) -> dict[int, SourceAssignment]:
        start, has_ended = self.position
        if has_ended:
            return {}
        end = min(start + self._pace.records, len(self._values))
        self.position = (end, end == len(self._values))
        return {0: SourceAssignment(self._values[start:end], self.is_exhausted)}

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        number, has_ended = self.position
        self.position = (number, True)
        return {} if has_ended else {0: SourceAssignment((), True)}

    def rewind(self, position: Any) -> None:
        self.position = position

    def restore(self, position: Any, is_exact: bool) -> None:
        number, has_ended = position
        if has_ended and not is_exact:
            number = len(self._values)  # What had ended stays ended; the subtask is notified again.
        self.position = (number, has_ended and is_exact)

    @property
    def is_exhausted(self) -> bool:
        return self.position[1]

    def share_read(self) -> float | None:
        return self.position[0] / len(self._values) if self._values else 1.0


@dataclass(frozen=True)
class SequencePosition:
    """What each subtask of a sequence has left to read, and which of them know that there is no more."""

    left: tuple[tuple[range, ...], ...]
    ended: frozenset[int] = frozenset()


class SequenceSourceCoordinator(KnownSourceCoordinator):
    """Numbers from `first` to `last`, in one range for each subtask."""

    def __init__(self, first: int, last: int, parallelism: int, pace: EpochPace) -> None:
        super().__init__(pace)
        self._parallelism = parallelism
        self._size = max(0, last + 1 - first)
        self.position = SequencePosition(_dealt([range(first, last + 1)], parallelism))

    def plan(self, epoch: int, is_checkpoint: bool) -> dict[int, SourceAssignment]:
        left, ended, planned = list(self.position.left), set(self.position.ended), {}
        for subtask in sorted(set(range(self._parallelism)) - ended):
            now, left[subtask] = _take(left[subtask], self._pace.records)
            planned[subtask] = SourceAssignment(now, is_last=not left[subtask])
            if not left[subtask]:
                ended.add(subtask)
        self.position = SequencePosition(tuple(left), frozenset(ended))
        return planned

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        remaining = set(range(self._parallelism)) - self.position.ended
        self.position = SequencePosition(self.position.left, frozenset(range(self._parallelism)))
        return {subtask: SourceAssignment((), True) for subtask in sorted(remaining)}

    def rewind(self, position: Any) -> None:
        self.position = position

    def restore(self, position: Any, is_exact: bool) -> None:
        if is_exact:
            self.position = position
            return
        unread = [each for ranges in position.left for each in ranges]
        if len(position.ended) == len(position.left):
            self.position = SequencePosition(_dealt([], self._parallelism))  # What had ended stays ended.
        elif len(position.left) == self._parallelism:
            self.position = SequencePosition(position.left)
        else:
            self.position = SequencePosition(_dealt(unread, self._parallelism))

    @property
    def is_exhausted(self) -> bool:
        return len(self.position.ended) == self._parallelism

    def share_read(self) -> float | None:
        left = sum(len(each) for ranges in self.position.left for each in ranges)
        return 1 - left / self._size if self._size else 1.0


def _take(ranges: tuple[range, ...], count: int) -> tuple[range, tuple[range, ...]]:
    """At most `count` numbers of the first range, and what is left then."""
    if not ranges:
        return range(0), ()
    first, *others = ranges
    return first[:count], tuple(each for each in (first[count:], *others) if each)


def _dealt(ranges: list[range], parts: int) -> tuple[tuple[range, ...], ...]:
    """All numbers of `ranges`, in their order, in `parts` portions of almost the same size."""
    total = sum(map(len, ranges))
    bounds = [total * part // parts for part in range(parts + 1)]
    portions = []
    for start, end in itertools.pairwise(bounds):
        portion, passed = [], 0
        for each in ranges:
            portion.append(each[max(0, start - passed) : max(0, end - passed)])
            passed += len(each)
        portions.append(tuple(each for each in portion if each))
    return tuple(portions)


def build_source_coordinator(description: SourceDescription, setup: SourceSetup) -> SourceCoordinator:
    match description:
        case CollectionSourceDescription():
            return CollectionSourceCoordinator(description.values, _known_pace(setup))
        case SequenceSourceDescription():
            pace = _known_pace(setup)
            return SequenceSourceCoordinator(description.start, description.end, setup.parallelism, pace)
        case SocketSourceDescription():
            return socket_coordinator(description, setup)
        case FunctionSourceDescription():
            return function_coordinator(description.function, setup)
        case SplitSourceDescription():
            watermarks = description.watermarks
            alignment = None if watermarks is None else watermarks.strategy.alignment
            return SplitSourceCoordinator(description.source, setup, alignment)
    raise UnsupportedFeatureError(f"there is no reader for {type(description).__name__}")


def _known_pace(setup: SourceSetup) -> EpochPace:
    """A bounded source is read in large steps, for speed, but in none that makes a checkpoint wait too long."""
    if setup.is_batch:
        return EpochPace(sys.maxsize, records=sys.maxsize)
    if setup.max_records is not None:
        return EpochPace(sys.maxsize, setup.max_records, setup.max_records)
    interval_ms = setup.config.get_optional(keys.CHECKPOINT_INTERVAL)
    if interval_ms is None:
        return EpochPace(_LONGEST_STEP_MS, records=_LARGE_STEP)
    shortest_ms = setup.config.get(keys.EPOCH_TARGET_DURATION)
    return EpochPace(max(shortest_ms, min(interval_ms, _LONGEST_STEP_MS)), records=_LARGE_STEP // 10)
