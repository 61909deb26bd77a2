"""The table that a person reads, and the file that keeps the figures."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.child import Outcome
from benchmarks.job import Setting

RESULTS = Path(__file__).resolve().parent / "results"


def render(benchmark: str, setting: Setting, outcomes: list[Outcome], notes: list[str]) -> str:
    """Records per second and, for the first system, how many times each other one's that is."""
    shape = "80/20 keys" if setting.has_skew else "even keys"
    rows = [["system", "records/s", "ratio", "records", "seconds", "of them fixed", "peak MiB", "CPU s/M records"]]
    rows += [_row(outcome, outcomes[0]) for outcome in outcomes]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [f"{benchmark}: parallelism {setting.parallelism}, {setting.keys:,} {shape}", ""]
    lines += ["  ".join(map(_aligned, row, widths, range(len(row)))) for row in rows]
    return "\n".join(lines + [f"note: {note}" for note in notes])


def _row(outcome: Outcome, first: Outcome) -> list[str]:
    found = outcome.measurement
    cpu, peak = outcome.cpu_seconds_per_million, outcome.peak_memory_bytes
    ratio = first.records_per_second / outcome.records_per_second
    return [
        outcome.system,
        f"{outcome.records_per_second:,.0f}",
        "" if outcome is first else f"{first.system} x {ratio:.1f}",
        f"{found.records:,}",
        f"{found.seconds:.1f}",
        f"{found.fixed_seconds:.1f}",
        "?" if peak is None else f"{peak / 2**20:,.0f}",
        "?" if cpu is None else f"{cpu:.1f}",
    ]


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def write_results(benchmark: str, setting: Setting, outcomes: list[Outcome], notes: list[str]) -> Path:
    """One file per benchmark, parallelism and kind of keys."""
    kind = "skewed" if setting.has_skew else "even"
    path = RESULTS / f"{benchmark}-p{setting.parallelism}-{kind}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(_document(benchmark, setting, outcomes, notes), indent=2) + "\n")
    return path


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
        "outcomes": [
            {
                **asdict(outcome),
                "records_per_second": round(outcome.records_per_second),
                "cpu_seconds_per_million": outcome.cpu_seconds_per_million,
            }
            for outcome in outcomes
        ],
        "notes": notes,
    }
