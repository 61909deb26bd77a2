"""Runs one of a peer's programs, warm: its name comes before the arguments that all programs take."""

from __future__ import annotations

import sys

from benchmarks.job import Run, measure_runs, parse_setting, report


def run_as_script(runs: dict[str, Run]) -> None:
    """Measure the program that the command line names and print the measurement as JSON."""
    name, *arguments = sys.argv[1:]
    report(measure_runs(runs[name], parse_setting(arguments)))
