"""What checkpoints cost a job that is busy all the time: the same count with one every second, and without.

`python -m benchmarks.checkpoint_cost` runs both in turn and prints the ratio of their medians, in wall and CPU time.
A ratio above 1.1 is marked. The end code is 1 if one is.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable

from benchmarks.child import Outcome, run_on
from benchmarks.job import Measurement, Setting
from benchmarks.systems import PENSTOCK

MOST = 1.1


def setting_of(parsed: argparse.Namespace, folder: str | None) -> Setting:
    """`folder`: where checkpoints go; None for none."""
    config = {"execution.checkpointing.interval": parsed.interval, "execution.checkpointing.dir": folder}
    chosen = {key: value for key, value in config.items() if value is not None} if folder is not None else {}
    return Setting(parsed.records, parsed.parallelism, parsed.keys, config=chosen)


def ratio(on: list[Measurement], off: list[Measurement], value: Callable[[Measurement], float | None]) -> float | None:
    """Of the medians; None if the system does not report the value."""
    medians = []
    for runs in (on, off):
        found = [each for each in map(value, runs) if each is not None]
        if not found:
            return None
        medians.append(statistics.median(found))
    return medians[0] / medians[1]


def render(on: list[Measurement], off: list[Measurement]) -> tuple[str, bool]:
    """The table, and whether a ratio is above what is allowed."""
    lines, is_high = [], False
    for name, value in (("wall", lambda run: run.seconds), ("CPU", lambda run: run.cpu_seconds)):
        found = ratio(on, off, value)
        if found is None:
            continue
        is_high = is_high or found > MOST
        values = [", ".join(f"{value(run):.2f}" for run in runs) for runs in (off, on)]
        mark = "   HIGH" if found > MOST else ""
        lines.append(f"{name:>5} s: without {values[0]}; with {values[1]}; ratio {found:.3f}{mark}")
    return "\n".join(lines), is_high


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_cost", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--interval", default="1 s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run (%(default)s)")
    parsed = parser.parse_args(words)
    runs: dict[bool, list[Measurement]] = {True: [], False: []}
    for number in range(2 * parsed.rounds):
        has_checkpoints = number % 2 == 1
        with tempfile.TemporaryDirectory(prefix="checkpoint-cost-") as folder:
            setting = setting_of(parsed, folder if has_checkpoints else None)
            outcome: Outcome | None = run_on(PENSTOCK, "keyed_count", setting, parsed.timeout)
        assert outcome is not None
        runs[has_checkpoints] += outcome.runs
    if len({run.digest for each in runs.values() for run in each}) != 1:
        print("results differ with checkpoints and without", file=sys.stderr)
        return 1
    print(
        f"{parsed.records:,} records, {parsed.keys:,} keys, parallelism {parsed.parallelism}, every {parsed.interval}"
    )
    table, is_high = render(runs[True], runs[False])
    print(table)
    return int(is_high)


if __name__ == "__main__":
    sys.exit(main())
