"""What the epochs of a job did over the last hour, by the second and by ten seconds: for charts and rates.

Its size depends on the number of vertices and subtasks alone, however short epochs are.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region
from penstock.runtime.protocol import TaskAck

FINE_MS, FINE_LENGTH = 1_000, 300
COARSE_MS, COARSE_LENGTH = 10_000, 360
RECENT_MS = 5_000
"""What counts as the present: an average over this time."""
_NO_PAUSE_MS = 5
"""An epoch that begins so soon after another one did not wait for input."""
_STEPS_PER_DOUBLING = 8


class Total(IntEnum):
    """What is added up for a vertex, and for a subtask."""

    RECORDS_IN = 0
    RECORDS_OUT = 1
    BYTES_IN = 2
    BYTES_OUT = 3
    BUSY_MS = 4
    BACKPRESSURED_MS = 5


if TYPE_CHECKING:
    Totals = array[float]
    """By Total."""
else:
    Totals = array  # Not generic before Python 3.12


def _nothing() -> Totals:
    return array("d", bytes(8 * len(Total)))


Numbers = Sequence[float]
"""What is to be added, by Total."""


@dataclass(frozen=True)
class _Held:
    """For how long subtasks waited for those behind them, in an epoch from `started_ms` to `ended_ms`."""

    started_ms: int
    ended_ms: int
    by_subtask: dict[tuple[int, int], Numbers]

    def is_followed_at_once(self, started_ms: int) -> bool:
        return started_ms - self.ended_ms <= max(_NO_PAUSE_MS, (self.ended_ms - self.started_ms) // 10)


@dataclass(frozen=True)
class EpochTimes:
    """The phases of an epoch, in milliseconds."""

    planning: int
    running: int
    completing: int


@dataclass(frozen=True)
class EpochReport:
    """A complete epoch of one region."""

    region: Region
    started_ms: int
    """By the driver's clock."""
    planning_ms: int
    """Until it was clear who reads what."""
    running_ms: int
    """From then until all subtasks had acknowledged."""
    completing_ms: int
    """From then until it was complete: checkpoint written, output shown."""
    is_checkpoint: bool
    acks: list[TaskAck]

    @property
    def duration_ms(self) -> int:
        return self.planning_ms + self.running_ms + self.completing_ms

    @property
    def ended_ms(self) -> int:
        return self.started_ms + self.duration_ms


@dataclass
class Bucket:
    """What happened within one second, or ten."""

    epochs: float = 0
    checkpoints: float = 0
    planning_ms: float = 0
    running_ms: float = 0
    completing_ms: float = 0
    durations: Counter[int] = field(default_factory=Counter)
    """How many epochs took how long; by logarithm."""
    state_size: int | None = None
    vertices: dict[int, Totals] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)
    subtasks: dict[tuple[int, int], Totals] = field(default_factory=dict)
    """Kept for the last seconds only."""

    def duration_ms(self, share: float) -> float | None:
        """The duration that this share of the epochs did not exceed; None without epochs."""
        rank = share * self.durations.total()
        seen = 0
        for step in sorted(self.durations):
            seen += self.durations[step]
            if seen >= rank:
                return _duration_of(step)
        return None


def _step_of(duration_ms: float) -> int:
    return -1 if duration_ms < 1 else round(math.log2(duration_ms) * _STEPS_PER_DOUBLING)


def _duration_of(step: int) -> float:
    return 0.5 if step < 0 else float(2 ** (step / _STEPS_PER_DOUBLING))


class Timeline:
    """Buckets of one width; only the newest are kept."""

    def __init__(self, width_ms: int, length: int) -> None:
        self.width_ms = width_ms
        self._length = length
        self._buckets: dict[int, Bucket] = {}

    def shares(self, start_ms: int, end_ms: int) -> Iterator[tuple[Bucket, float]]:
        """The buckets that a time touches, each with the share of the time that is in it."""
        first, last = start_ms // self.width_ms, max(start_ms, end_ms) // self.width_ms
        if first == last:
            yield self.at(last), 1.0
            return
        for number in range(max(first, last - self._length + 1), last + 1):
            begin, end = number * self.width_ms, (number + 1) * self.width_ms
            share = (min(end, end_ms) - max(begin, start_ms)) / (end_ms - start_ms)
            if share > 0:
                yield self.at(number), share

    def at(self, number: int) -> Bucket:
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = Bucket()
            for old in [each for each in self._buckets if each <= number - self._length]:
                del self._buckets[old]
        return bucket

    def forget_subtasks_before(self, at_ms: int) -> None:
        for number, bucket in self._buckets.items():
            if bucket.subtasks and (number + 1) * self.width_ms <= at_ms:
                bucket.subtasks = {}

    def between(self, first: int, end: int) -> list[Bucket]:
        """The buckets from number `first` to before `end`; empty ones where nothing happened."""
        return [self._buckets.get(number) or Bucket() for number in range(first, end)]

    def oldest(self) -> int | None:
        return min(self._buckets, default=None)


class EpochHistory:
    """Runners of regions add to it, each in its own thread; requests read it.

    A subtask is busy while it runs its part of an epoch. When it is done before those that it sends to, and the next
    epoch follows without a pause, they kept it from continuing: it was backpressured. Otherwise it was idle.
    """

    def __init__(self, graph: JobGraph) -> None:
        self._downstream = [_reachable(graph, vertex.id) for vertex in graph.vertices]
        self._lock = threading.Lock()
        self._fine = Timeline(FINE_MS, FINE_LENGTH)
        self._coarse = Timeline(COARSE_MS, COARSE_LENGTH)
        self._held: dict[Region, _Held] = {}
        """Of the last epoch of each region: whether it was backpressure is clear when the next one begins."""
        self._state_sizes: dict[Region, int] = {}
        self._forget_at_ms = 0
        self.first_ms: int | None = None
        self.epochs = 0
        self.last: EpochTimes | None = None
        """How long the last epoch took; None before the first."""

    def add(self, report: EpochReport, state_size: int) -> None:
        """A complete epoch; `state_size`: of all subtasks of its region."""
        with self._lock:
            if self.first_ms is None:
                self.first_ms = report.started_ms
            self.epochs += 1
            self.last = EpochTimes(report.planning_ms, report.running_ms, report.completing_ms)
            self._state_sizes[report.region] = state_size
            before = self._held.get(report.region)
            if before is not None and before.is_followed_at_once(report.started_ms):
                self._add_backpressure(before)
            self._held[report.region] = self._held_in(report)
            longest_ms = report.duration_ms
            by_subtask = {(ack.vertex, ack.subtask): _numbers_of(ack, longest_ms) for ack in report.acks}
            by_vertex = _by_vertex(by_subtask)
            for timeline in (self._fine, self._coarse):
                self._add_to(timeline, report, by_vertex)
            self._add_subtasks(report.started_ms, report.ended_ms, by_subtask)
            if report.ended_ms >= self._forget_at_ms:
                self._fine.forget_subtasks_before(report.ended_ms - 2 * RECENT_MS)
                self._forget_at_ms = report.ended_ms + RECENT_MS

    def _add_to(self, timeline: Timeline, report: EpochReport, by_vertex: dict[int, Totals]) -> None:
        bucket = None
        for bucket, share in timeline.shares(report.started_ms, report.ended_ms):
            bucket.epochs += share
            bucket.checkpoints += share * report.is_checkpoint
            bucket.planning_ms += share * report.planning_ms
            bucket.running_ms += share * report.running_ms
            bucket.completing_ms += share * report.completing_ms
            for vertex, totals in by_vertex.items():
                _add(bucket.vertices, vertex, totals, share)
        assert bucket is not None, "a time touches at least one bucket"
        bucket.durations[_step_of(report.duration_ms)] += 1
        bucket.state_size = sum(self._state_sizes.values())
        for ack in report.acks:
            lowest = min(bucket.watermarks.get(ack.vertex, ack.outcome.watermark), ack.outcome.watermark)
            bucket.watermarks[ack.vertex] = lowest

    def _add_subtasks(self, start_ms: int, end_ms: int, by_subtask: dict[tuple[int, int], Numbers]) -> None:
        for bucket, share in self._fine.shares(start_ms, end_ms):
            for key, numbers in by_subtask.items():
                _add(bucket.subtasks, key, numbers, share)

    def _held_in(self, report: EpochReport) -> _Held:
        ends: dict[int, int] = {}
        for ack in report.acks:
            ends[ack.vertex] = max(ack.ended_ms, ends.get(ack.vertex, 0))
        until = {
            vertex: min(report.ended_ms, max((ends.get(each, 0) for each in self._downstream[vertex]), default=0))
            for vertex in ends
        }
        held: dict[tuple[int, int], Numbers] = {
            (ack.vertex, ack.subtask): (0, 0, 0, 0, 0, until[ack.vertex] - ack.ended_ms)
            for ack in report.acks
            if until[ack.vertex] > ack.ended_ms >= report.started_ms
        }
        return _Held(report.started_ms, report.ended_ms, held)

    def _add_backpressure(self, held: _Held) -> None:
        by_vertex = _by_vertex(held.by_subtask)
        for timeline in (self._fine, self._coarse):
            for bucket, share in timeline.shares(held.started_ms, held.ended_ms):
                for vertex, totals in by_vertex.items():
                    _add(bucket.vertices, vertex, totals, share)
        self._add_subtasks(held.started_ms, held.ended_ms, held.by_subtask)

    # --- for requests ----------------------------------------------------------------------------------------------

    def recent(self, now_ms: int) -> dict[tuple[int, int], Totals]:
        """By (vertex, subtask): what it did per second, over the last seconds."""
        with self._lock:
            if self.first_ms is None:
                return {}
            end = now_ms // FINE_MS
            begin = max(end - RECENT_MS // FINE_MS, self.first_ms // FINE_MS)
            if begin >= end:  # It has just begun: the first second is not over.
                begin, end = end, end + 1
            sums: dict[tuple[int, int], Totals] = {}
            for bucket in self._fine.between(begin, end):
                for key, totals in bucket.subtasks.items():
                    _add(sums, key, totals, 1000 / (FINE_MS * (end - begin)))
            return sums

    def buckets(self, is_fine: bool, since_ms: int, now_ms: int) -> tuple[int, int, list[Bucket]]:
        """The width of buckets, the beginning of the first one, and all that begin after `since_ms` and are over."""
        timeline = self._fine if is_fine else self._coarse
        with self._lock:
            oldest = timeline.oldest()
            end = now_ms // timeline.width_ms
            length = FINE_LENGTH if is_fine else COARSE_LENGTH
            first = max(end - length, since_ms // timeline.width_ms + 1, end if oldest is None else oldest)
            return timeline.width_ms, first * timeline.width_ms, timeline.between(first, max(first, end))


def _reachable(graph: JobGraph, vertex: int) -> frozenset[int]:
    seen: set[int] = set()
    waiting = [vertex]
    while waiting:
        for edge in graph.out_edges(waiting.pop()):
            if edge.target_vertex not in seen:
                seen.add(edge.target_vertex)
                waiting.append(edge.target_vertex)
    return frozenset(seen)


def _numbers_of(ack: TaskAck, longest_ms: int) -> Numbers:
    outcome = ack.outcome
    busy_ms = min(max(0, ack.ended_ms - ack.started_ms), longest_ms)
    return outcome.records_in, outcome.records_out, outcome.bytes_in, outcome.bytes_out, busy_ms, 0


def _by_vertex(by_subtask: dict[tuple[int, int], Numbers]) -> dict[int, Totals]:
    sums: dict[int, Totals] = {}
    for (vertex, _), numbers in by_subtask.items():
        _add(sums, vertex, numbers, 1.0)
    return sums


def _add(sums: dict[Any, Totals], key: Any, numbers: Numbers, share: float) -> None:
    """Written out: it is done for every subtask in every epoch."""
    total = sums.get(key)
    if total is None:
        total = sums[key] = _nothing()
    records_in, records_out, bytes_in, bytes_out, busy_ms, backpressured_ms = numbers
    total[0] += records_in * share
    total[1] += records_out * share
    total[2] += bytes_in * share
    total[3] += bytes_out * share
    total[4] += busy_ms * share
    total[5] += backpressured_ms * share
