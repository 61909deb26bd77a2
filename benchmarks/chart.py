"""Draws the results as an SVG: `python -m benchmarks.chart [FILE]`.

A group of bars for each benchmark, one bar for each system, all on one logarithmic scale of records per second.
"""

from __future__ import annotations

import math
import sys
from html import escape
from pathlib import Path

from benchmarks.rates import rate_beyond_fixed
from benchmarks.table import Comparison, read_results, shape_text

CHART = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.svg"

WIDTH = 860
LEFT, RIGHT = 150, 90
TOP, BOTTOM = 64, 40
BAR, ROW, HEAD, GAP = 11, 15, 22, 12

# Text, lines and bars follow the reader's colour scheme; both sets keep a contrast of 4.5 to 1 for text.
_STYLE = """
  text { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #57606a;
    paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
  .title { font-size: 15px; font-weight: 600; fill: #1f2328 }
  .name { font-size: 12px; font-weight: 600; fill: #1f2328 }
  .paper { fill: #ffffff }
  .grid { stroke: #d8dee4; stroke-width: 1 }
  .first { fill: #0b6bcb } .peer { fill: #a3adb8 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9da7b3; stroke: #0d1117 }
    .title, .name { fill: #e6edf3 }
    .paper { fill: #0d1117 }
    .grid { stroke: #2b323b }
    .first { fill: #58a6ff } .peer { fill: #5d6874 }
  }
"""


class LogScale:
    """From records per second to a place on the axis, which begins and ends at powers of ten."""

    def __init__(self, rates: list[float]) -> None:
        # A little below the smallest, which would have no bar otherwise.
        self.low = math.floor(math.log10(min(rates) * 0.8))
        self.high = max(math.ceil(math.log10(max(rates))), self.low + 1)

    def x(self, rate: float) -> float:
        share = (math.log10(rate) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[int]:
        return [10**power for power in range(self.low, self.high + 1)]


def draw(comparisons: list[Comparison]) -> str:
    """The whole picture; without any results one that says so."""
    comparisons = [each for each in comparisons if each.outcomes]
    if not comparisons:
        return _svg(120, [f'<text class="title" x="16" y="60">{escape("No results yet: run make bench")}</text>'])
    scale = LogScale([rate for each in comparisons for _, rate, _ in bars(each)])
    height = TOP + sum(_height(each) for each in comparisons) + BOTTOM
    parts = [
        f'<text class="title" x="16" y="24">Records per second, logarithmic{_remark(comparisons)}</text>',
        *_axis(scale, height),
    ]
    y = float(TOP)
    for each in comparisons:
        parts += _group(each, scale, y)
        y += _height(each)
    return _svg(height, parts)


def _remark(comparisons: list[Comparison]) -> str:
    is_short = any(has_fixed_cost for each in comparisons for _, _, has_fixed_cost in bars(each))
    return '<tspan font-size="11" font-weight="400" dx="12">* with its fixed cost</tspan>' if is_short else ""


def bars(comparison: Comparison) -> list[tuple[str, float, bool]]:
    """System, rate, and True if the fixed cost is part of it because the run was too short."""
    rates = [(each, rate_beyond_fixed(each.measurement)) for each in comparison.outcomes]
    return [
        (each.system, each.measurement.records_per_second if rate is None else rate, rate is None)
        for each, rate in rates
    ]


def _height(comparison: Comparison) -> int:
    return HEAD + ROW * len(comparison.outcomes) + GAP


def _axis(scale: LogScale, height: int) -> list[str]:
    parts = []
    for tick in scale.ticks():
        x, label = scale.x(tick), _short(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - BOTTOM}"/>')
        for y in (TOP - 14, height - BOTTOM + 16):
            parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{label}</text>')
    return parts


def _short(number: int) -> str:
    for size, unit in ((1_000_000, " M"), (1_000, " k")):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def _group(comparison: Comparison, scale: LogScale, y: float) -> list[str]:
    about = shape_text(comparison.benchmark, comparison.setting)
    parts = [
        f'<text class="name" x="16" y="{y + 14}">{escape(comparison.benchmark)}'
        f'<tspan font-weight="400" dx="8">{escape(about)}</tspan></text>'
    ]
    for place, (system, rate, has_fixed_cost) in enumerate(bars(comparison)):
        top = y + HEAD + ROW * place
        value = f"{rate:,.0f}{'*' if has_fixed_cost else ''}"
        parts += [
            f'<text x="{LEFT - 8}" y="{top + BAR - 1.5}" text-anchor="end">{escape(system)}</text>',
            f'<rect class="{"peer" if place else "first"}" x="{LEFT}" y="{top}" width="{scale.x(rate) - LEFT:.1f}" '
            f'height="{BAR}" rx="2"/>',
            f'<text x="{scale.x(rate) + 6:.1f}" y="{top + BAR - 1.5}">{value}</text>',
        ]
    return parts


def _svg(height: float, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="Records per second of each benchmark by system">\n'
        f'<style>{_STYLE}</style>\n<rect class="paper" width="{WIDTH}" height="{height:.0f}"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else CHART
    path.write_text(draw(read_results()))


if __name__ == "__main__":
    main()
