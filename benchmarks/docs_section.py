"""Fills the results into docs/benchmarks.md and docs/latency.md, between two marks."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import latency_docs, markdown
from benchmarks.chart import CHART, draw
from benchmarks.child import Outcome
from benchmarks.programs import code_of
from benchmarks.rates import rate_beyond_fixed, ratio, ratio_range
from benchmarks.systems import PEERS, PENSTOCK
from benchmarks.table import COLUMNS, RESULTS, SHORT_RUN, Comparison, read_results, shape_text

PAGE = CHART.with_name("benchmarks.md")
LATENCY_PAGE = CHART.with_name("latency.md")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
_JAVA, _LOOP, _FORKED = "flink java", "python loop", "python loops forked"
_COSTS = ["spread", "peak MiB", "shuffled B/record", "CPU s/M records", "records", "seconds", "of them fixed"]


def write_docs(page: Path = PAGE, chart: Path = CHART, latency_page: Path = LATENCY_PAGE) -> None:
    """Put the results that are there into the pages and redraw the chart."""
    comparisons = [each for each in read_results() if each.outcomes]
    page.write_text(filled(page.read_text(), comparisons, page.name))
    chart.write_text(draw(comparisons))
    latencies = RESULTS / "latency.json"
    if latencies.exists():
        content = latency_docs.section(json.loads(latencies.read_text()))
        marks = latency_docs.BEGIN, latency_docs.END
        latency_page.write_text(markdown.filled(latency_page.read_text(), *marks, content, latency_page.name))


def filled(text: str, comparisons: list[Comparison], name: str = PAGE.name) -> str:
    return markdown.filled(text, BEGIN, END, section(comparisons), name)


def section(comparisons: list[Comparison]) -> str:
    """How fast and how large beside Java and a plain loop, what settings cost, other peers, and what each run cost."""
    if not comparisons:
        return "No results yet."
    parts = [yardstick_table(comparisons), variant_table(comparisons), peer_table(comparisons), cost_table(comparisons)]
    text = "\n\n".join(part for part in parts if part)
    remark = f"\n\n{_plain(SHORT_RUN)}." if "*" in text else ""
    return f"{runs_text(comparisons)}\n\n{text}{remark}"


def runs_text(comparisons: list[Comparison]) -> str:
    runs = sorted({len(outcome.runs) for each in comparisons for outcome in each.outcomes})
    counted = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    plural = "" if runs == [1] else "s"
    return f"Medians of {counted} run{plural}; in brackets the smallest and the largest ratio of any two of them."


def yardstick_table(comparisons: list[Comparison]) -> str:
    """Speed as times Java's and as a share of the loops', and memory beside it."""
    head = ["benchmark", f"{PENSTOCK.name}, records/s", "spread"]
    head += [f"times {_JAVA}", f"share of a {_LOOP}", f"share of {_FORKED}"]
    head += [f"peak MiB, {name}" for name in (PENSTOCK.name, _JAVA)]
    rows = []
    for each in comparisons:
        found = _by_system(each)
        ours = found.get(PENSTOCK.name)
        if ours is not None:
            ratios = [_ratio_cell(ours, found.get(peer)) for peer in (_JAVA, _LOOP, _FORKED)]
            memory = [_cost("peak MiB", found.get(name)) for name in (PENSTOCK.name, _JAVA)]
            rows.append([_label(each), _rate_cell(ours), _cost("spread", ours), *ratios, *memory])
    return markdown.table(head, rows)


def variant_table(comparisons: list[Comparison]) -> str:
    """What a setting costs: the rate of a program with it, as a share of the plain program's, on each system."""
    plain = {(each.benchmark, each.setting.keys): _by_system(each) for each in comparisons}
    systems = (PENSTOCK.name, _JAVA)
    rows = []
    for each in comparisons:
        base = code_of(each.benchmark)
        without = plain.get((base, each.setting.keys))
        if base != each.benchmark and without is not None:
            found = _by_system(each)
            cells = [_share_cell(found.get(name), without.get(name)) for name in systems]
            rows.append([f"`{each.benchmark}` / `{base}`", *cells])
    return markdown.table(["rate of", *systems], rows) if rows else ""


def peer_table(comparisons: list[Comparison]) -> str:
    """How many times as fast as each other peer."""
    known = [row.name for rows in PEERS.values() for row in rows if row.name not in (_JAVA, _LOOP, _FORKED)]
    there = {outcome.system for each in comparisons for outcome in each.outcomes}
    peers = [name for name in known if name in there]
    rows = []
    for each in comparisons:
        found = _by_system(each)
        ours = found.get(PENSTOCK.name)
        if ours is not None and any(peer in found for peer in peers):
            rows.append([_label(each), *(_ratio_cell(ours, found.get(peer)) for peer in peers)])
    return markdown.table(["benchmark", *(f"times {peer}" for peer in peers)], rows) if rows else ""


def cost_table(comparisons: list[Comparison]) -> str:
    rows = [
        [_label(each), outcome.system, _rate_cell(outcome), *(_cost(title, outcome) for title in _COSTS)]
        for each in comparisons
        for outcome in each.outcomes
    ]
    return markdown.table(["benchmark", "system", "records/s", *_COSTS], rows)


def _by_system(comparison: Comparison) -> dict[str, Outcome]:
    return {outcome.system: outcome for outcome in comparison.outcomes}


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
