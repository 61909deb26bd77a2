"""How fast a job is with its keyed state on disk, beside the same job with its state in memory.

    python -m benchmarks.state_backends
    python -m benchmarks.state_backends --keys 10000000 --records 20000000 --memory 1gb

A job counts per key, in the process of the driver alone (`execution.target: inline`), with as many keys as said. Both
backends take turns, each run in a process of its own, and CPU time counts, which others on the machine disturb least.
`even` keys come in a scattered order, each as often as any other; of `skewed` ones a hundredth gets a fifth of the
records. `text` is for keys that are texts, with a tuple as state. `peak MB` is all memory of the process, with those
pages of its files that are in memory; `own MB` is without these; the process has some 80 MB before it has any state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedProcessFunction,
    NumberSequenceSource,
    RuntimeContext,
    StreamExecutionEnvironment,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, results_of
from benchmarks.keyed_count import SHOWS_ONE_KEY_OF, CountPerKey

_ROOT = Path(__file__).parents[1]
_PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class CountWithText(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count, first = self.last.value() or (0, f"first seen at {value[1]}")
        self.last.update((count + 1, first))
        if value[1] % SHOWS_ONE_KEY_OF == 0:
            yield value[1], count


def _numbers(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    source = NumberSequenceSource(0, setting.records - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


def even(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    keys = setting.keys
    pairs = _numbers(env, setting).map(lambda number: (number * 7919 % keys, number), _PAIR)
    return pairs.key_by(lambda pair: pair[0], Types.LONG()).process(CountPerKey(), _PAIR)


def skewed(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    keys = setting.keys
    scattered = _numbers(env, setting).map(lambda number: (number * 7919 % keys, number), _PAIR)
    pairs = scattered.map(lambda pair: (pair[0] * pair[0] // keys * pair[0] // keys, pair[1]), _PAIR)
    return pairs.key_by(lambda pair: pair[0], Types.LONG()).process(CountPerKey(), _PAIR)


def text(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    keys = setting.keys
    pair_type = Types.TUPLE([Types.STRING(), Types.LONG()])
    pairs = _numbers(env, setting).map(lambda number: (f"key-{number * 7919 % keys}", number), pair_type)
    return pairs.key_by(lambda pair: pair[0], Types.STRING()).process(CountWithText(), _PAIR)


JOBS: dict[str, Callable[[StreamExecutionEnvironment, Setting], DataStream]] = {
    "even": even,
    "skewed": skewed,
    "text": text,
}


@dataclass(frozen=True)
class Run:
    cpu_seconds: float
    results: int
    peak_bytes: int
    own_bytes: int


class _PeakMemory:
    """The most memory that this process had, seen from time to time."""

    def __init__(self) -> None:
        self.all = self.own = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            self.all = max(self.all, 1024 * int(status["VmRSS"].split()[0]))
            self.own = max(self.own, 1024 * int(status["RssAnon"].split()[0]))
            time.sleep(0.1)


def run(job: str, backend: str, keys: int, records: int, memory: str, is_checkpointed: bool) -> Run:
    config = {"execution.target": "inline", "state.backend.type": backend}
    config["state.backend.rocksdb.memory.fixed-per-slot"] = memory
    with tempfile.TemporaryDirectory() as folder:
        if is_checkpointed:
            config |= {"execution.checkpointing.interval": "1 s", "execution.checkpointing.dir": Path(folder).as_uri()}
        results_of(JOBS[job], Setting(1_000, 1, keys, config=config))
        peak, before = _PeakMemory(), time.process_time()
        results = results_of(JOBS[job], Setting(records, 1, keys, config=config))
        return Run(time.process_time() - before, len(results), peak.all, peak.own)


def run_apart(*arguments: str) -> Run:
    command = [sys.executable, "-m", "benchmarks.state_backends", "--child", *arguments]
    answer = subprocess.run(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    return Run(**json.loads(answer.stdout.splitlines()[-1]))


def compare(job: str, is_checkpointed: bool, parsed: argparse.Namespace) -> str:
    rest = (str(parsed.keys), str(parsed.records), parsed.memory, str(int(is_checkpointed)))
    turns = [(run_apart(job, "hashmap", *rest), run_apart(job, "rocksdb", *rest)) for _ in range(parsed.repeat)]
    if len({each.results for turn in turns for each in turn}) != 1:
        raise AssertionError(f"{job}: the backends disagree")
    heap, disk = ([turn[at] for turn in turns] for at in (0, 1))
    rates = [parsed.records / median(each.cpu_seconds for each in runs) for runs in (heap, disk)]
    memory = [f"{max(getattr(each, name) for each in runs) / 1e6:,.0f}" for runs in (heap, disk) for name in _MEMORY]
    checkpoints = "every second" if is_checkpointed else "none"
    cells = [job, checkpoints, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{rates[1] / rates[0]:.2f}", *memory]
    return f"| {' | '.join(cells)} |"


_MEMORY = ("peak_bytes", "own_bytes")
_HEAD = ["keys", "checkpoints", "in memory, records per CPU s", "on disk", "share"]
_HEAD += [f"{what} MB, {where}" for where in ("in memory", "on disk") for what in ("peak", "own")]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        job, backend, keys, records, memory, is_checkpointed = sys.argv[2:]
        print(json.dumps(asdict(run(job, backend, int(keys), int(records), memory, is_checkpointed == "1"))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000, help="(%(default)s)")
    parser.add_argument("--records", type=int, default=4_000_000, help="(%(default)s)")
    parser.add_argument("--memory", default="200mb", help="state.backend.rocksdb.memory.fixed-per-slot (%(default)s)")
    parser.add_argument("--jobs", default=",".join(JOBS), help="(%(default)s)")
    parser.add_argument("--checkpoints", default="off,on", help="(%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, help="(%(default)s)")
    parsed = parser.parse_args()
    print(f"| {' | '.join(_HEAD)} |\n|{'---|' * len(_HEAD)}")
    for job in parsed.jobs.split(","):
        for checkpoints in parsed.checkpoints.split(","):
            print(compare(job, checkpoints == "on", parsed), flush=True)


if __name__ == "__main__":
    main()
