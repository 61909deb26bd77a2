"""When each phase of a Penstock epoch ran, in all processes of the job, written down from outside of Penstock.

The driver's methods are wrapped in its process (`watch_driver`). Those of workers are wrapped in Spark's Python daemon
(benchmarks/epoch_spans_daemon.py), from which workers are forked. All use one clock of the machine.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "BENCH_SPANS"
PLAIN, WITH_CHECKPOINT = "plain epoch", "with a checkpoint"
EPOCH, WAITING = "driver: the rest", "(before it: waiting for records or the interval)"
MESSAGES = "messages between driver and workers"
METADATA = "checkpoint: metadata"
# In the order of the table. A number says how deep a phase lies in others: the deepest that runs has the time.
DEPTHS = {
    "plan sources": 1,
    MESSAGES: 1,
    "workers: taking commands, giving answers": 3,
    "workers: waiting for each other's rows": 4,
    "operators": 5,
    "checkpoint: state files": 6,
    "driver's own tasks (print, collect)": 1,
    "acknowledgements, output": 1,
    METADATA: 2,
    "commits": 2,
    EPOCH: 0,
}
_PLAN, _, _WORKER, _WAITING, _OPERATORS, _STATE, _DRIVER_TASKS, _ACKS, _, _COMMITS, _ = DEPTHS


@dataclass(frozen=True)
class Span:
    phase: str
    start_ns: int
    end_ns: int


class Recorder:
    """Writes spans to a file of this process."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def add(self, phase: str, start_ns: int) -> None:
        line = json.dumps([phase, start_ns, time.monotonic_ns()]) + "\n"
        # Opened each time: workers are forked.
        with open(self._folder / f"{os.getpid()}.jsonl", "a") as file:
            file.write(line)

    def around(self, owner: Any, method: str, phase: str) -> None:
        """Wrap a function, or a method of a class."""
        function = vars(owner)[method]

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            start_ns = time.monotonic_ns()
            try:
                return function(*given, **named)
            finally:
                self.add(phase, start_ns)

        setattr(owner, method, timed)

    def between(self, owner: Any, first: str, last: str, phase: str) -> None:
        """From the beginning of one method of a class to the end of another one that follows it."""
        begin, end = vars(owner)[first], vars(owner)[last]
        started_ns: dict[int, int] = {}

        @functools.wraps(begin)
        def beginning(instance: Any, *given: Any, **named: Any) -> Any:
            started_ns[id(instance)] = time.monotonic_ns()
            return begin(instance, *given, **named)

        @functools.wraps(end)
        def ending(instance: Any, *given: Any, **named: Any) -> Any:
            result = end(instance, *given, **named)
            self.add(phase, started_ns[id(instance)])
            return result

        setattr(owner, first, beginning)
        setattr(owner, last, ending)

    def around_generator(self, owner: Any, method: str, phase: str) -> None:
        """From its first result being asked for to its end: what others do in between is deeper, or waits for it."""
        function = vars(owner)[method]

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Iterator[Any]:
            start_ns = time.monotonic_ns()
            yield from function(*given, **named)
            self.add(phase, start_ns)

        setattr(owner, method, timed)


def watch_driver(folder: str) -> dict[str, str]:
    """Wrap the driver's side, for the rest of this process; the settings with which workers are wrapped, too."""
    from penstock.checkpoint.coordinator import CheckpointCoordinator
    from penstock.jobmaster.execution.worker_group import WorkerGroup
    from penstock.jobmaster.region.runner import RegionRunner
    from penstock.jobmaster.region.sources import RegionSources
    from penstock.jobmaster.sinks.sink_commits import SinkCommits
    from penstock.runtime.task_host import TaskHost

    os.environ[FOLDER] = folder
    recorder = Recorder(folder)
    recorder.between(RegionRunner, "_prepare_epoch", "_complete_epoch", EPOCH)
    recorder.around(RegionSources, "plan", _PLAN)
    recorder.around(RegionRunner, "_complete", _ACKS)
    recorder.around(WorkerGroup, "run_epoch", MESSAGES)
    recorder.around_generator(TaskHost, "run_task", _DRIVER_TASKS)
    recorder.around(CheckpointCoordinator, "complete_acknowledged", METADATA)
    recorder.around(SinkCommits, "commit", _COMMITS)
    return {"spark.python.daemon.module": "benchmarks.epoch_spans_daemon"}


def watch_epochs(folder: str) -> None:
    """Write down when epochs ran, and nothing else, for the rest of this process."""
    from penstock.jobmaster.region.runner import RegionRunner

    Recorder(folder).between(RegionRunner, "_prepare_epoch", "_complete_epoch", EPOCH)


def watch_workers() -> None:
    """Wrap the side of workers, in the process that they are forked from."""
    from penstock.runtime.exchange import Inbox
    from penstock.runtime.resident_worker import ResidentWorker
    from penstock.runtime.task_host import TaskHost

    recorder = Recorder(os.environ[FOLDER])
    recorder.around(ResidentWorker, "_run_epoch", _WORKER)
    recorder.around(Inbox, "wait_for", _WAITING)
    recorder.around_generator(TaskHost, "run_task", _OPERATORS)
    recorder.around(TaskHost, "_snapshot", _STATE)
    recorder.around(TaskHost, "_completed", _STATE)


def read_spans(folder: Path) -> list[Span]:
    lines = (line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines())
    return [Span(*json.loads(line)) for line in lines]


def epoch_times_ms(spans: list[Span], last_seconds: float) -> list[float]:
    """What epochs took that began within the last seconds of what was written down."""
    epochs = [span for span in spans if span.phase == EPOCH]
    begin = max((span.end_ns for span in epochs), default=0) - int(last_seconds * 1e9)
    return [(span.end_ns - span.start_ns) / 1e6 for span in epochs if span.start_ns >= begin]


def breakdown(spans: list[Span], skip_seconds: float = 0) -> dict[str, dict[str, float]]:
    """Median milliseconds of each phase, of plain epochs and of those with a checkpoint, and of all phases together.

    Every moment of an epoch counts for one phase, so those of one epoch add up to it (their medians only nearly do).
    """
    epochs = sorted((span for span in spans if span.phase == EPOCH), key=lambda span: span.start_ns)
    begin = epochs[0].start_ns + int(skip_seconds * 1e9) if epochs else 0
    others = [span for span in spans if span.phase != EPOCH]
    found: dict[str, list[dict[str, float]]] = {PLAIN: [], WITH_CHECKPOINT: []}
    for before, epoch in itertools.pairwise(epochs):
        if epoch.start_ns < begin:
            continue
        inside = [each for each in others if each.end_ns > epoch.start_ns and each.start_ns < epoch.end_ns]
        times = _shares(epoch, inside)
        times["an epoch"] = (epoch.end_ns - epoch.start_ns) / 1e6
        times[WAITING] = (epoch.start_ns - before.end_ns) / 1e6
        kind = WITH_CHECKPOINT if any(each.phase == METADATA for each in inside) else PLAIN
        found[kind].append(times)
    return {kind: _medians(each) for kind, each in found.items() if each}


def _shares(epoch: Span, inside: Iterable[Span]) -> dict[str, float]:
    """Milliseconds by phase: each moment belongs to the deepest phase that runs."""
    spans = [epoch, *inside]
    cuts = {min(max(at, epoch.start_ns), epoch.end_ns) for span in spans for at in (span.start_ns, span.end_ns)}
    ordered = sorted(cuts)
    shares: defaultdict[str, float] = defaultdict(float)
    for start, end in itertools.pairwise(ordered):
        running = [span.phase for span in spans if span.start_ns <= start and span.end_ns >= end]
        shares[max(running, key=DEPTHS.__getitem__)] += (end - start) / 1e6
    return shares


def _medians(epochs: list[dict[str, float]]) -> dict[str, float]:
    names = [*DEPTHS, "an epoch", WAITING]
    medians = {name: statistics.median(times.get(name, 0.0) for times in epochs) for name in names}
    return {**medians, "epochs": float(len(epochs))}


def render_breakdown(found: dict[str, dict[str, float]]) -> str:
    """A column for each kind of epoch: median milliseconds and their part of the epoch."""
    lines = ["", "an epoch by phase, median ms" + " " * 32 + "".join(f"{kind:>24}" for kind in found)]
    for name in [*DEPTHS, "an epoch", WAITING]:
        cells = [f"{times[name]:8.1f} {times[name] / times['an epoch']:6.0%}" for times in found.values()]
        lines.append(f"{name:60}" + "".join(f"{cell:>24}" for cell in cells))
    lines.append(f"{'epochs':60}" + "".join(f"{times['epochs']:>24,.0f}" for times in found.values()))
    return "\n".join(lines)
