"""Fills the results into docs/benchmarks.md, between two marks."""

from __future__ import annotations

from pathlib import Path

from benchmarks.chart import CHART, draw
from benchmarks.child import Outcome
from benchmarks.rates import rate_beyond_fixed, ratio
from benchmarks.systems import PEERS
from benchmarks.table import COLUMNS, SHORT_RUN, Comparison, read_results, shape_text

PAGE = CHART.with_name("benchmarks.md")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
_COSTS = ["peak MiB", "shuffled B/record", "CPU s/M records", "records", "seconds", "of them fixed"]


def write_docs(page: Path = PAGE, chart: Path = CHART) -> None:
    """Put the results that are there into the page and draw the chart anew."""
    comparisons = [each for each in read_results() if each.outcomes]
    page.write_text(filled(page.read_text(), comparisons, page.name))
    chart.write_text(draw(comparisons))


def filled(text: str, comparisons: list[Comparison], name: str = PAGE.name) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name}: the results go between the lines {BEGIN} and {END}, and one is missing; add it")
    return f"{before}{BEGIN}\n{section(comparisons)}\n{END}{after}"


def section(comparisons: list[Comparison]) -> str:
    """Two tables: how many times as fast as each peer, and what each run cost."""
    if not comparisons:
        return "No results yet."
    speeds = speed_table(comparisons)
    is_short = any("*" in line for line in speeds)
    remark = ["", f"{_plain(SHORT_RUN)}."] if is_short else []
    return "\n".join([*speeds, *remark, "", *cost_table(comparisons)])


def speed_table(comparisons: list[Comparison]) -> list[str]:
    first = comparisons[0].outcomes[0].system
    peers = list(dict.fromkeys(it.system for each in comparisons for it in each.outcomes if it.system != first))
    known = [row.name for rows in PEERS.values() for row in rows]
    peers.sort(key=lambda name: known.index(name) if name in known else len(known))
    lines = _table([["benchmark", f"{first}, records/s", *(f"times {peer}" for peer in peers)]])
    for each in comparisons:
        by_system = {outcome.system: outcome for outcome in each.outcomes}
        ours = by_system.get(first)
        if ours is not None:
            cells = [_ratio_cell(ours, by_system.get(peer)) for peer in peers]
            lines.append(_line([_label(each), _rate_cell(ours), *cells]))
    return lines


def cost_table(comparisons: list[Comparison]) -> list[str]:
    lines = _table([["benchmark", "system", "records/s", *_COSTS]])
    for each in comparisons:
        for outcome in each.outcomes:
            costs = [COLUMNS[title](outcome, each.outcomes[0]) for title in _COSTS]
            lines.append(_line([_label(each), outcome.system, _rate_cell(outcome), *costs]))
    return lines


def _table(rows: list[list[str]]) -> list[str]:
    return [*map(_line, rows), "|" + "---|" * len(rows[0])]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _label(comparison: Comparison) -> str:
    return f"`{comparison.benchmark}`: {shape_text(comparison.benchmark, comparison.setting)}"


def _rate_cell(outcome: Outcome) -> str:
    rate = rate_beyond_fixed(outcome.measurement)
    return _plain(f"{outcome.measurement.records_per_second:,.0f}*") if rate is None else f"{rate:,.0f}"


def _ratio_cell(ours: Outcome, theirs: Outcome | None) -> str:
    return "" if theirs is None else _plain(str(ratio(ours.measurement, theirs.measurement)))


def _plain(text: str) -> str:
    """Without meaning in Markdown."""
    return text.replace("*", "\\*")
