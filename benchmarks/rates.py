"""How systems compare: rates of one benchmark without what any run costs, and the ratios between them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.job import Measurement

CLEAR_SECONDS = 0.2
"""Less than this beyond the fixed cost is too little for a rate without it."""


@dataclass(frozen=True)
class Ratio:
    """How many times as many records a second one system takes as another."""

    times: float
    has_fixed_cost: bool
    """True if one of the runs was too short: then the fixed cost is part of both rates."""

    def __str__(self) -> str:
        digits = 2 if self.times < 10 else 0
        return f"{self.times:,.{digits}f}{'*' if self.has_fixed_cost else ''}"


def rate_beyond_fixed(found: Measurement) -> float | None:
    """Records a second without the fixed cost; None if too little time is left for that."""
    return found.records / found.seconds_beyond_fixed if found.seconds_beyond_fixed >= CLEAR_SECONDS else None


def ratio(first: Measurement, other: Measurement) -> Ratio:
    ours, theirs = rate_beyond_fixed(first), rate_beyond_fixed(other)
    if ours is None or theirs is None:
        return Ratio(first.records_per_second / other.records_per_second, has_fixed_cost=True)
    return Ratio(ours / theirs, has_fixed_cost=False)


def ratio_range(first: Sequence[Measurement], other: Sequence[Measurement]) -> tuple[float, float]:
    """The smallest and the largest ratio of any two runs of both; all with their fixed cost if one is too short."""
    is_clear = all(rate_beyond_fixed(run) is not None for run in (*first, *other))
    ours, theirs = ([_seconds_per_record(run, is_clear) for run in runs] for runs in (first, other))
    return min(theirs) / max(ours), max(theirs) / min(ours)


def _seconds_per_record(run: Measurement, is_beyond_fixed: bool) -> float:
    return (run.seconds_beyond_fixed if is_beyond_fixed else run.seconds) / run.records


def spread(runs: Sequence[Measurement]) -> float:
    """How far the slowest and the fastest run are apart, as a part of the median time; 0 for a single run."""
    is_clear = all(rate_beyond_fixed(run) is not None for run in runs)
    seconds = [_seconds_per_record(run, is_clear) for run in runs]
    return (max(seconds) - min(seconds)) / statistics.median(seconds)
