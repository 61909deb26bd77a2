"""How systems compare: rates of one benchmark without what any run costs, and the ratios between them."""

from __future__ import annotations

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
