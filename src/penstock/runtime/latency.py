"""Latency markers, as in Flink: sources emit them at an interval, they travel with the records, and every operator
notes how long they took to reach it. They overtake no record, and no function sees them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from penstock.common import config_keys as keys
from penstock.common.clocks import wall_clock_ms
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError


@dataclass(frozen=True)
class LatencyMarker:
    """Emitted at `marked_ms` by a subtask of a source."""

    operator_id: str
    subtask: int
    marked_ms: int


class Granularity(Enum):
    """What an operator has separate histograms for: nothing, each source, or each subtask of a source."""

    SINGLE = "single"
    OPERATOR = "operator"
    SUBTASK = "subtask"


@dataclass(frozen=True)
class LatencyTracking:
    """How latency is measured."""

    interval_ms: int
    granularity: Granularity = Granularity.OPERATOR
    history: int = keys.LATENCY_HISTORY.default
    """How many markers an operator reports on."""

    @staticmethod
    def of(config: Configuration) -> LatencyTracking | None:
        """None if latency is not measured, which is the default."""
        interval_ms = config.get(keys.LATENCY_INTERVAL)
        if interval_ms <= 0:
            return None
        text, history = config.get(keys.LATENCY_GRANULARITY).lower(), config.get(keys.LATENCY_HISTORY)
        if text not in {each.value for each in Granularity}:
            raise ConfigurationError(
                f"{keys.LATENCY_GRANULARITY.key}: {text!r} is not known; use single, operator or subtask"
            )
        if history < 1:
            raise ConfigurationError(f"{keys.LATENCY_HISTORY.key} must be positive, got {history}")
        return LatencyTracking(interval_ms, Granularity(text), history)


SourceVariables = tuple[tuple[str, str], ...]
"""What distinguishes the histograms of one operator: names and values of variables for a source and its subtask."""


class LatencyStats:
    """How long the last markers took to reach one subtask of an operator."""

    def __init__(self, tracking: LatencyTracking, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._tracking = tracking
        self._clock = clock
        self._latencies: dict[SourceVariables, deque[int]] = {}
        self._counts: dict[SourceVariables, int] = {}
        self._changed: set[SourceVariables] = set()

    def report(self, marker: LatencyMarker) -> None:
        variables = self._variables(marker)
        latencies = self._latencies.setdefault(variables, deque(maxlen=self._tracking.history))
        latencies.append(max(0, self._clock() - marker.marked_ms))  # Clocks of two machines may differ.
        self._counts[variables] = self._counts.get(variables, 0) + 1
        self._changed.add(variables)

    def _variables(self, marker: LatencyMarker) -> SourceVariables:
        match self._tracking.granularity:
            case Granularity.SINGLE:
                return ()
            case Granularity.OPERATOR:
                return (("source_id", marker.operator_id),)
            case Granularity.SUBTASK:
                return ("source_id", marker.operator_id), ("source_subtask_index", str(marker.subtask))

    def take_changed(self) -> dict[SourceVariables, tuple[int, list[int]]]:
        """For each histogram with markers since the last call: how many ever came, and how long the last ones took."""
        changed = {each: (self._counts[each], list(self._latencies[each])) for each in self._changed}
        self._changed.clear()
        return changed


class MarkerClock:
    """Decides when a source emits a marker."""

    def __init__(self, tracking: LatencyTracking, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._interval_ms = tracking.interval_ms
        self._clock = clock
        self._last_ms: int | None = None

    def due_ms(self) -> int | None:
        """The time for a marker to emit now; None if none is due."""
        now_ms = self._clock()
        # One is due as well if the clock was set back.
        if self._last_ms is not None and 0 <= now_ms - self._last_ms < self._interval_ms:
            return None
        self._last_ms = now_ms
        return now_ms
