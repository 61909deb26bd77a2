"""Whether a job that runs for long stays as it is: memory, file descriptors, files and the time of an epoch.

`python -m benchmarks.soak --minutes 30` runs a job with keyed state, windows, timers and checkpoints at a steady rate,
looks at all its processes and files at regular intervals, and prints a table: what was there after the first fifth of
the time and at the end, and the slope in between. What grows by more than a tenth in an hour is marked, unless it is
within what the values vary by. The end code is 1 if anything is marked, or if the job has failed.

The number of files goes up and down: a subtask writes some 20 deltas, one a second here, before it gathers them in one
file, so a run of less than two minutes says little about them. Memory needs longer: 20 minutes at least.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.process_tree import end_session, memory_bytes, process_ids
from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource, RateLimiterStrategy
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingProcessingTimeWindows

SAMPLES = 60
WARM_UP = 0.2
"""The share of the time after which a job should have what it needs: caches, pools, compiled loops."""
MOST_AN_HOUR = 0.1
EPOCHS_OF_S = 10
KEYS = 1000
_MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    minutes: float
    memory_mib: float
    descriptors: float
    processes: float
    files: float
    """In the job's folders: checkpoints, spools, state, what the exchange keeps."""
    epoch_ms: float
    """The mean of the last seconds."""


@dataclass(frozen=True)
class Slope:
    """A line through the values after the warm-up."""

    what: str
    first: float
    last: float
    per_hour: float
    spread: float
    """How far values lie from the line: the standard deviation."""

    @property
    def grows(self) -> bool:
        """True if an hour adds more than a tenth, and the run more than the values vary by."""
        return self.per_hour > MOST_AN_HOUR * max(abs(self.first), 1.0) and self.last - self.first > 2 * self.spread


def sample_times_s(minutes: float, chance: random.Random) -> list[float]:
    """When to look, one moment in the second half of each interval.

    Regular looks at something that goes up and down regularly would see it grow: now at its beginning, then at its end.
    """
    every_s = minutes * 60 / SAMPLES
    return [(number - chance.random() / 2) * every_s for number in range(1, SAMPLES + 1)]


def slopes_of(samples: list[Sample]) -> list[Slope]:
    """The least squares line of each value, as it begins and ends."""
    later = [each for each in samples if each.minutes >= WARM_UP * samples[-1].minutes]
    times = [each.minutes for each in later]
    found = []
    for name in (field.name for field in fields(Sample) if field.name != "minutes"):
        values = [getattr(each, name) for each in later]
        line = statistics.linear_regression(times, values)
        on_line = [line.intercept + line.slope * minutes for minutes in times]
        spread = statistics.pstdev([value - at for value, at in zip(values, on_line, strict=True)])
        found.append(Slope(name, on_line[0], on_line[-1], 60 * line.slope, spread))
    return found


def table_of(slopes: list[Slope]) -> str:
    rows = [["", "after the warm-up", "at the end", "an hour", "vary by", ""]]
    for each in slopes:
        figures = [each.first, each.last, each.per_hour, each.spread]
        rows.append([each.what, *(f"{figure:,.2f}" for figure in figures), "GROWS" if each.grows else ""])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


# --- the job, in a process and a session of its own ------------------------------------------------------------------


class CountsAndForgets(KeyedProcessFunction):
    """A state and a timer for each key: counts for a second, then emits and starts over."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        if self.count.value() is None:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + 1000)
        self.count.update((self.count.value() or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int]]:
        yield ctx.get_current_key(), self.count.value()
        self.count.clear()


def build(env: StreamExecutionEnvironment, rate: int) -> None:
    source = DataGeneratorSource(
        lambda number: (number % KEYS, number), 2**62, RateLimiterStrategy.per_second(rate), Types.PICKLED_BYTE_ARRAY()
    )
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counts = numbers.key_by(lambda pair: pair[0]).process(CountsAndForgets())
    windows = counts.key_by(lambda pair: pair[0] % 10).window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
    windows.reduce(lambda one, other: (one[0], one[1] + other[1])).filter(lambda pair: pair[1] < 0).print()


def run_child(folder: Path, minutes: float, parallelism: int, rate: int, target: str) -> None:
    """Run the job and print a sample, as JSON, at regular intervals."""
    settings = {
        "execution.target": target,
        "spark.master": f"local[{parallelism}]",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.interval": "1 s",
        "web.ui.enabled": "false",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    build(env.set_parallelism(parallelism), rate)
    client = env.execute_async("soak")
    history = client.master.epochs  # type: ignore[attr-defined]
    began = time.monotonic()
    for at_s in sample_times_s(minutes, random.Random()):
        threading.Event().wait(max(0.0, began + at_s - time.monotonic()))
        now_ms = time.time_ns() // 1_000_000
        _, _, buckets = history.buckets(True, now_ms - EPOCHS_OF_S * 1000, now_ms)
        epochs = sum(each.epochs for each in buckets) or 1.0
        took_ms = sum(each.planning_ms + each.running_ms + each.completing_ms for each in buckets)
        sample = Sample((time.monotonic() - began) / 60, **_resources(folder), epoch_ms=took_ms / epochs)
        print(json.dumps(asdict(sample)), flush=True)
        if client.get_job_status().result().is_globally_terminal_state():
            break
    client.cancel().result()


def _resources(folder: Path) -> dict[str, float]:
    session = os.getsid(0)
    processes = process_ids(session)
    return {
        "memory_mib": (memory_bytes(session) or 0) / _MIB,
        "descriptors": sum(_entries(Path(f"/proc/{process}/fd")) for process in processes),
        "processes": len(processes),
        "files": sum(len(names) for _, _, names in os.walk(folder)),
    }


def _entries(folder: Path) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:  # The process has ended meanwhile.
        return 0


# --- from outside ----------------------------------------------------------------------------------------------------


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--rate", type=int, default=2000, help="records per second")
    parser.add_argument("--target", choices=["spark", "inline"], default="spark")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.child is not None:
        run_child(given.child, given.minutes, given.parallelism, given.rate, given.target)
        return 0
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        command = [sys.executable, "-m", "benchmarks.soak", "--child", folder]
        for name in ("minutes", "parallelism", "rate", "target"):
            command += [f"--{name}", str(getattr(given, name))]
        # All that the job keeps is in a folder of its own, so that its files can be counted.
        child = subprocess.Popen(
            command,
            env={**os.environ, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert child.stdout is not None
            samples = [Sample(**json.loads(line)) for line in child.stdout if line.startswith("{")]
            code = child.wait()
        finally:
            end_session(child.pid)
    if code != 0 or len(samples) < SAMPLES:
        print(f"the job has failed after {len(samples)} of {SAMPLES} samples (end code {code})", file=sys.stderr)
        return 1
    slopes = slopes_of(samples)
    print(f"soak: {given.minutes:g} min, parallelism {given.parallelism}, {given.rate} records/s, {given.target}\n")
    print(table_of(slopes))
    return int(any(each.grows for each in slopes))


if __name__ == "__main__":
    sys.exit(main())
