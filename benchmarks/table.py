"""The table that a person reads, and the files that keep the figures."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import Outcome
from benchmarks.job import Measurement, Setting
from benchmarks.programs import NAMES, PROGRAMS, Program
from benchmarks.rates import rate_beyond_fixed, ratio, ratio_range, spread

RESULTS = Path(__file__).resolve().parent / "results"
SUMMARY = "summary.json"
SHORT_RUN = "* a run took too little time beyond its fixed cost: that cost is part of both rates here"


@dataclass(frozen=True)
class Comparison:
    """One benchmark on several systems; the first is the one that the others are compared with."""

    benchmark: str
    setting: Setting
    outcomes: list[Outcome]


def render(benchmark: str, setting: Setting, outcomes: list[Outcome], notes: list[str]) -> str:
    """Records per second and, for the first system, how many times each other one's that is."""
    rows = [["system", *COLUMNS], *(_row(outcome, outcomes[0]) for outcome in outcomes)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [f"{benchmark}: {shape_text(benchmark, setting)}", ""]
    lines += ["  ".join(map(_aligned, row, widths, range(len(row)))) for row in rows]
    lines += [SHORT_RUN] if any("*" in row[4] for row in rows[1:]) else []
    return "\n".join(lines + [f"note: {note}" for note in notes])


def shape_text(benchmark: str, setting: Setting) -> str:
    """What of the setting matters to the benchmark, besides the number of records."""
    program = PROGRAMS.get(benchmark, Program())
    keys = [] if program.keys is None else [f"{setting.keys:,} keys"]
    spread = ["80/20" if setting.has_skew else "even"] if program.has_spread else []
    return ", ".join([f"parallelism {setting.parallelism}", *keys, *spread])


def _row(outcome: Outcome, first: Outcome) -> list[str]:
    return [outcome.system, *(cell(outcome, first) for cell in COLUMNS.values())]


def _ratio_cell(outcome: Outcome, first: Outcome) -> str:
    return "" if outcome is first else f"{first.system} x {ratio(first.measurement, outcome.measurement)}"


def _known(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)


def shuffled_per_record(found: Measurement) -> float | None:
    return None if found.shuffled_bytes is None else found.shuffled_bytes / found.records


def cpu_per_million(found: Measurement) -> float | None:
    return None if found.cpu_seconds is None else found.cpu_seconds / found.records * 1_000_000


def _peak_mib(outcome: Outcome) -> float | None:
    return None if outcome.peak_memory_bytes is None else outcome.peak_memory_bytes / 2**20


COLUMNS: dict[str, Callable[[Outcome, Outcome], str]] = {
    "records/s": lambda it, _: f"{it.measurement.records_per_second:,.0f}",
    "without fixed cost": lambda it, _: _known(rate_beyond_fixed(it.measurement), ",.0f"),
    "spread": lambda it, _: f"{spread(it.runs):.0%}" if len(it.runs) > 1 else "",
    "ratio": _ratio_cell,
    "peak MiB": lambda it, _: _known(_peak_mib(it), ",.0f"),
    "shuffled B/record": lambda it, _: _known(shuffled_per_record(it.measurement), ".1f"),
    "CPU s/M records": lambda it, _: _known(cpu_per_million(it.measurement), ".2f"),
    "records": lambda it, _: f"{it.measurement.records:,}",
    "seconds": lambda it, _: f"{it.measurement.seconds:.1f}",
    "of them fixed": lambda it, _: f"{it.measurement.fixed_seconds:.1f}",
}
"""What stands in a row beside the system's name, from its outcome and that of the first system."""


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def write_results(
    benchmark: str, setting: Setting, outcomes: list[Outcome], notes: list[str], folder: Path = RESULTS
) -> Path:
    """Write what was found to a file of its own, and rewrite the summary of all that are there."""
    path = folder / _file_name(benchmark, setting)
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(_document(benchmark, setting, outcomes, notes), indent=2) + "\n")
    (folder / SUMMARY).write_text(json.dumps(summary(read_results(folder)), indent=2) + "\n")
    return path


def _file_name(benchmark: str, setting: Setting) -> str:
    """The same for the same benchmark, parallelism, number and kind of keys: the newest run replaces earlier ones."""
    kind = "skewed" if setting.has_skew else "even"
    return f"{benchmark}-p{setting.parallelism}-{setting.keys}-{kind}.json"


def _document(benchmark: str, setting: Setting, outcomes: list[Outcome], notes: list[str]) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "setting": asdict(setting),
        "machine": {
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "outcomes": [_outcome_document(outcome, outcomes[0]) for outcome in outcomes],
        "notes": notes,
    }


def _outcome_document(outcome: Outcome, first: Outcome) -> dict[str, Any]:
    found = outcome.measurement
    compared = ratio(first.measurement, found)
    return {
        "system": outcome.system,
        "runs": [asdict(run) for run in outcome.runs],
        "peak_memory_bytes": outcome.peak_memory_bytes,
        "spread": round(spread(outcome.runs), 3),
        "records_per_second": round(found.records_per_second),
        "records_per_second_without_fixed_cost": _rounded(rate_beyond_fixed(found)),
        "first_is_times_as_fast": round(compared.times, 3),
        "first_is_times_as_fast_from_to": [round(each, 3) for each in ratio_range(first.runs, outcome.runs)],
        "ratio_has_fixed_cost": compared.has_fixed_cost,
        "shuffled_bytes_per_record": shuffled_per_record(found),
        "cpu_seconds_per_million": cpu_per_million(found),
    }


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def read_results(folder: Path = RESULTS) -> list[Comparison]:
    """What `write_results` wrote, in the order of the programs; other files of the folder are others' business."""
    found = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        comparison = _comparison(document) if _has_runs(document) else None
        if comparison is not None and path.name == _file_name(comparison.benchmark, comparison.setting):
            found.append(comparison)
    return sorted(found, key=lambda each: NAMES.index(each.benchmark) if each.benchmark in NAMES else len(NAMES))


def _has_runs(document: Any) -> bool:
    """False for what others have written, and for what older versions have."""
    return isinstance(document, dict) and all("runs" in outcome for outcome in document.get("outcomes", [{}]))


def _comparison(document: dict[str, Any]) -> Comparison:
    outcomes = [
        Outcome(each["system"], [Measurement(**run) for run in each["runs"]], each["peak_memory_bytes"])
        for each in document["outcomes"]
    ]
    return Comparison(document["benchmark"], Setting(**document["setting"]), outcomes)


def summary(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    """A line for each benchmark and system."""
    return [
        {
            "benchmark": each.benchmark,
            "parallelism": each.setting.parallelism,
            "keys": each.setting.keys,
            "has_skew": each.setting.has_skew,
            "records": outcome.measurement.records,
            **_outcome_document(outcome, each.outcomes[0]),
        }
        for each in comparisons
        for outcome in each.outcomes
    ]
