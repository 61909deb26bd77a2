"""What the epochs of a job did over the last hour, by the second and by ten seconds: for charts and rates.

Its size depends on the number of vertices and subtasks alone, however short epochs are.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
"""An epoch that begins within this time after another one did not wait for input."""
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


Numbers = Sequence[float]
"""What to add, by Total."""


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
    has_more: bool = True
    """False if sources had given all they had, so that what follows at once does so by chance."""

    @property
    def duration_ms(self) -> int:
        return self.planning_ms + self.running_ms + self.completing_ms

    @property
    def ended_ms(self) -> int:
        return self.started_ms + self.duration_ms

    def is_followed_at_once(self, started_ms: int) -> bool:
        """True if nothing but the subtasks themselves kept the next epoch from beginning earlier."""
        return self.has_more and started_ms - self.ended_ms <= max(_NO_PAUSE_MS, self.duration_ms // 10)


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

    def add(self, other: Bucket, share: float) -> None:
        """Add a share of what happened."""
        self.epochs += share * other.epochs
        self.checkpoints += share * other.checkpoints
        self.planning_ms += share * other.planning_ms
        self.running_ms += share * other.running_ms
        self.completing_ms += share * other.completing_ms
        for vertex, totals in other.vertices.items():
            _add(self.vertices, vertex, totals, share)

    def add_whole(self, other: Bucket) -> None:
        """Add what belongs to the end of epochs."""
        self.durations.update(other.durations)
        if other.state_size is not None:
            self.state_size = other.state_size
        for vertex, watermark in other.watermarks.items():
            self.watermarks[vertex] = min(self.watermarks.get(vertex, watermark), watermark)

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


@dataclass
class _Open:
    """Epochs that are counted together: one, or several within one second."""

    start_ms: int
    end_ms: int
    counts: Bucket = field(default_factory=Bucket)

    def is_within(self, second: int) -> bool:
        return self.start_ms // FINE_MS == second == self.end_ms // FINE_MS


class EpochHistory:
    """Runners of regions add to it, each in its own thread; requests read it.

    A subtask is busy while it runs its part of an epoch. When it is done before those that it sends to, sources have
    more, and the next epoch follows without a pause, they kept it from continuing: it was backpressured. Otherwise it
    was idle.
    """

    def __init__(self, graph: JobGraph) -> None:
        self._downstream = [_reachable(graph, vertex.id) for vertex in graph.vertices]
        self._lock = threading.Lock()
        self._fine = Timeline(FINE_MS, FINE_LENGTH)
        self._coarse = Timeline(COARSE_MS, COARSE_LENGTH)
        self._open: _Open | None = None
        """What is not in the timelines yet."""
        self._before: dict[Region, EpochReport] = {}
        """The last epoch of each region: whether there was backpressure is clear when the next one begins."""
        self._state_sizes: dict[Region, int] = {}
        self._forget_at_ms = 0
        self.first_ms: int | None = None
        self.epochs = 0
        self.last: EpochTimes | None = None
        """How long the last epoch took; None before the first."""

    def add(self, report: EpochReport, state_size: int | None) -> None:
        """A complete epoch; `state_size`: of all subtasks of its region, None if it is what it was."""
        with self._lock:
            if self.first_ms is None:
                self.first_ms = report.started_ms
            self.epochs += 1
            self.last = EpochTimes(report.planning_ms, report.running_ms, report.completing_ms)
            if state_size is not None:
                self._state_sizes[report.region] = state_size
            before = self._before.get(report.region)
            if before is not None and before.is_followed_at_once(report.started_ms):
                self._add_backpressure(before)
            self._before[report.region] = report
            self._add_epoch(self._counts_of(report.started_ms, report.ended_ms), report)

    def _counts_of(self, start_ms: int, end_ms: int) -> Bucket:
        """Where to count what happens in this time. Epochs within one second, most often many, are counted together."""
        open_ = self._open
        first, last = start_ms // FINE_MS, end_ms // FINE_MS
        if open_ is None or first != last or not open_.is_within(first):
            self._settle()
            open_ = self._open = _Open(start_ms, end_ms)
        return open_.counts

    def _add_epoch(self, counts: Bucket, report: EpochReport) -> None:
        counts.epochs += 1
        counts.checkpoints += report.is_checkpoint
        counts.planning_ms += report.planning_ms
        counts.running_ms += report.running_ms
        counts.completing_ms += report.completing_ms
        longest_ms = report.duration_ms
        counts.durations[_step_of(longest_ms)] += 1
        counts.state_size = sum(self._state_sizes.values())
        for ack in report.acks:
            _add(counts.subtasks, (ack.vertex, ack.subtask), _numbers_of(ack, longest_ms), 1.0)
            watermark = ack.outcome.watermark
            counts.watermarks[ack.vertex] = min(counts.watermarks.get(ack.vertex, watermark), watermark)

    def _add_backpressure(self, report: EpochReport) -> None:
        held = self._held_in(report)
        if held:
            counts = self._counts_of(report.started_ms, report.ended_ms)
            for subtask, held_ms in held.items():
                _add(counts.subtasks, subtask, (0, 0, 0, 0, 0, held_ms), 1.0)

    def _held_in(self, report: EpochReport) -> dict[tuple[int, int], int]:
        """For how long subtasks waited for those downstream."""
        ends: dict[int, int] = {}
        for ack in report.acks:
            ends[ack.vertex] = max(ack.ended_ms, ends.get(ack.vertex, 0))
        until = {
            vertex: min(report.ended_ms, max((ends.get(each, 0) for each in self._downstream[vertex]), default=0))
            for vertex in ends
        }
        return {
            (ack.vertex, ack.subtask): until[ack.vertex] - ack.ended_ms
            for ack in report.acks
            if until[ack.vertex] > ack.ended_ms >= report.started_ms
        }

    def _settle(self) -> None:
        """Put what was counted into the timelines."""
        open_, self._open = self._open, None
        if open_ is None:
            return
        counts = open_.counts
        counts.vertices = _by_vertex(counts.subtasks)
        for timeline in (self._fine, self._coarse):
            for bucket, share in timeline.shares(open_.start_ms, open_.end_ms):
                bucket.add(counts, share)
        for bucket, share in self._fine.shares(open_.start_ms, open_.end_ms):
            for subtask, totals in counts.subtasks.items():
                _add(bucket.subtasks, subtask, totals, share)
        for timeline in (self._fine, self._coarse):
            timeline.at(open_.end_ms // timeline.width_ms).add_whole(counts)
        if open_.end_ms >= self._forget_at_ms:
            self._fine.forget_subtasks_before(open_.end_ms - 2 * RECENT_MS)
            self._forget_at_ms = open_.end_ms + RECENT_MS

    # --- for requests ----------------------------------------------------------------------------------------------

    def recent(self, now_ms: int) -> dict[tuple[int, int], Totals]:
        """By (vertex, subtask): what it did per second, over the last seconds."""
        with self._lock:
            self._settle()
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
            self._settle()
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


def _by_vertex(by_subtask: Mapping[tuple[int, int], Numbers]) -> dict[int, Totals]:
    sums: dict[int, Totals] = {}
    for (vertex, _), numbers in by_subtask.items():
        _add(sums, vertex, numbers, 1.0)
    return sums


def _add(sums: dict[Any, Totals], key: Any, numbers: Numbers, share: float) -> None:
    """Written out: it is done for every subtask in every epoch."""
    total = sums.get(key)
    if total is None:
        total = sums[key] = array("d", bytes(8 * len(Total)))
    records_in, records_out, bytes_in, bytes_out, busy_ms, backpressured_ms = numbers
    total[0] += records_in * share
    total[1] += records_out * share
    total[2] += bytes_in * share
    total[3] += bytes_out * share
    total[4] += busy_ms * share
    total[5] += backpressured_ms * share
