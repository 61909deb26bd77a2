"""Fills the results into docs/benchmarks.md, between two marks."""

from __future__ import annotations

from pathlib import Path

from benchmarks.chart import CHART, draw
from benchmarks.child import Outcome
from benchmarks.programs import code_of
from benchmarks.rates import rate_beyond_fixed, ratio, ratio_range
from benchmarks.systems import PEERS, PENSTOCK
from benchmarks.table import COLUMNS, SHORT_RUN, Comparison, read_results, shape_text

PAGE = CHART.with_name("benchmarks.md")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
_JAVA, _LOOP, _FORKED = "flink java", "python loop", "python loops forked"
_COSTS = ["spread", "peak MiB", "shuffled B/record", "CPU s/M records", "records", "seconds", "of them fixed"]


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
    """How fast and how large beside Java and a plain loop, what settings cost, other peers, and what each run cost."""
    if not comparisons:
        return "No results yet."
    parts = [yardstick_table(comparisons), variant_table(comparisons), peer_table(comparisons), cost_table(comparisons)]
    text = "\n\n".join("\n".join(part) for part in parts if part)
    remark = f"\n\n{_plain(SHORT_RUN)}." if "*" in text else ""
    return f"{runs_text(comparisons)}\n\n{text}{remark}"


def runs_text(comparisons: list[Comparison]) -> str:
    runs = sorted({len(outcome.runs) for each in comparisons for outcome in each.outcomes})
    counted = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    plural = "" if runs == [1] else "s"
    return f"Medians of {counted} run{plural}; in brackets the smallest and the largest ratio of any two of them."


def yardstick_table(comparisons: list[Comparison]) -> list[str]:
    """Speed as times Java's and as a share of the loops', and memory beside it."""
    ours_and_theirs = [f"peak MiB, {name}" for name in (PENSTOCK.name, _JAVA)]
    lines = _table(
        [
            [
                "benchmark",
                f"{PENSTOCK.name}, records/s",
                "spread",
                f"times {_JAVA}",
                f"share of a {_LOOP}",
                f"share of {_FORKED}",
                *ours_and_theirs,
            ]
        ]
    )
    for each in comparisons:
        found = _by_system(each)
        ours = found.get(PENSTOCK.name)
        if ours is not None:
            ratios = [_ratio_cell(ours, found.get(peer)) for peer in (_JAVA, _LOOP, _FORKED)]
            memory = [_cost("peak MiB", found.get(name)) for name in (PENSTOCK.name, _JAVA)]
            lines.append(_line([_label(each), _rate_cell(ours), _cost("spread", ours), *ratios, *memory]))
    return lines


def variant_table(comparisons: list[Comparison]) -> list[str]:
    """What a setting costs: the rate of a program with it, as a share of the plain program's, on each system."""
    plain = {each.benchmark: _by_system(each) for each in comparisons}
    systems = (PENSTOCK.name, _JAVA)
    rows = []
    for each in comparisons:
        base = code_of(each.benchmark)
        if base != each.benchmark and base in plain:
            found = _by_system(each)
            cells = [_share_cell(found.get(name), plain[base].get(name)) for name in systems]
            rows.append(_line([f"`{each.benchmark}` / `{base}`", *cells]))
    return [*_table([["rate of", *systems]]), *rows] if rows else []


def peer_table(comparisons: list[Comparison]) -> list[str]:
    """How many times as fast as each other peer."""
    known = [row.name for rows in PEERS.values() for row in rows if row.name not in (_JAVA, _LOOP, _FORKED)]
    there = {outcome.system for each in comparisons for outcome in each.outcomes}
    peers = [name for name in known if name in there]
    if not peers:
        return []
    lines = _table([["benchmark", *(f"times {peer}" for peer in peers)]])
    for each in comparisons:
        found = _by_system(each)
        ours = found.get(PENSTOCK.name)
        if ours is not None and any(peer in found for peer in peers):
            lines.append(_line([_label(each), *(_ratio_cell(ours, found.get(peer)) for peer in peers)]))
    return lines


def _by_system(comparison: Comparison) -> dict[str, Outcome]:
    return {outcome.system: outcome for outcome in comparison.outcomes}


def cost_table(comparisons: list[Comparison]) -> list[str]:
    lines = _table([["benchmark", "system", "records/s", *_COSTS]])
    for each in comparisons:
        for outcome in each.outcomes:
            costs = [_cost(title, outcome) for title in _COSTS]
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
    if theirs is None:
        return ""
    median = _plain(str(ratio(ours.measurement, theirs.measurement)))
    if len(ours.runs) == len(theirs.runs) == 1:
        return median
    low, high = ratio_range(ours.runs, theirs.runs)
    digits = 2 if high < 10 else 0
    return f"{median} ({low:,.{digits}f}-{high:,.{digits}f})"


def _share_cell(with_setting: Outcome | None, plain: Outcome | None) -> str:
    return "" if with_setting is None or plain is None else _ratio_cell(with_setting, plain)


def _cost(title: str, outcome: Outcome | None) -> str:
    return "" if outcome is None else COLUMNS[title](outcome, outcome)


def _plain(text: str) -> str:
    """Without meaning in Markdown."""
    return text.replace("*", "\\*")
