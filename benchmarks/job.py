"""Runs one benchmark in this process, warm, and measures it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from benchmarks.flink_api import PACKAGE, Configuration, DataStream, StreamExecutionEnvironment
from benchmarks.process_tree import UsedCpu

FIXED_COST_RECORDS = 1_000
RESULT_MARK = "BENCHMARK RESULT "

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """One run: how much of what, and how."""

    records: int = 2_000_000
    parallelism: int = 1
    keys: int = 1_000
    has_skew: bool = True
    """True if 80 % of the records go to 20 % of the keys."""
    config: dict[str, str] = field(default_factory=dict)
    repeats: int = 1
    """How many times a warm process is measured."""


@dataclass(frozen=True)
class Measurement:
    """What one warm run took. `fixed_seconds` is what a run of almost no records takes, and is part of `seconds`."""

    records: int
    seconds: float
    fixed_seconds: float
    cpu_seconds: float | None
    results: int
    digest: str
    shuffled_bytes: int | None = None
    """What workers sent to each other. None: the system does not report it."""

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def seconds_beyond_fixed(self) -> float:
        return self.seconds - self.fixed_seconds


Build = Callable[[StreamExecutionEnvironment, Setting], DataStream]
Run = Callable[[Setting], tuple[Iterable[Any], int | None]]
"""Runs a job to its end: what came out of it, and how many bytes its workers exchanged, if the system reports it.

Results that lie in files are read when they are iterated, which is when the time has been taken.
"""
Comparable = Callable[[list[Any]], list[Any]]
"""From the results of a run to what must be the same in every run, where results depend on the clock."""


def digest_of(results: Iterable[Any]) -> str:
    """The same for the same results in any order, from any system."""
    lines = sorted(repr(tuple(result) if isinstance(result, tuple | list) else result) for result in results)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def run(build: Build, setting: Setting) -> tuple[list[Any], int | None]:
    """Run the job to its end; what came out of it, and how many bytes its workers exchanged, if that is reported."""
    return watched(lambda: results_of(build, setting))


def watched(job: Callable[[], T]) -> tuple[T, int | None]:
    """What a job returns, and how many bytes its workers exchanged, if the system reports it."""
    if PACKAGE != "penstock":
        return job(), None
    from benchmarks.exchange import ExchangeWatch

    with ExchangeWatch() as watch:
        return job(), watch.shuffled_bytes()


def environment_of(setting: Setting) -> StreamExecutionEnvironment:
    config = Configuration()
    for key, value in setting.config.items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(setting.parallelism)
    return env


def results_of(build: Build, setting: Setting) -> list[Any]:
    """Run the job to its end; what came out of it."""
    with build(environment_of(setting), setting).execute_and_collect() as results:
        return list(results)


def sizes_of(setting: Setting) -> list[int]:
    """How many records the runs of a measurement have: to warm up, for the fixed cost, and to be measured."""
    return [max(setting.records // 10, FIXED_COST_RECORDS), FIXED_COST_RECORDS, setting.records]


def measure(build: Build, setting: Setting, comparable: Comparable | None = None) -> list[Measurement]:
    return measure_runs(lambda own: run(build, own), setting, comparable)


def measure_runs(run: Run, setting: Setting, comparable: Comparable | None = None) -> list[Measurement]:
    """A tenth first, so that everything is loaded and compiled; then, as often as asked, almost nothing and all."""
    warm_up, almost_nothing, _ = sizes_of(setting)
    list(run(replace(setting, records=warm_up))[0])
    return [_measured(run, almost_nothing, setting, comparable) for _ in range(setting.repeats)]


def _measured(run: Run, almost_nothing: int, setting: Setting, comparable: Comparable | None) -> Measurement:
    started = time.perf_counter()
    unused, _ = run(replace(setting, records=almost_nothing))
    fixed_seconds = time.perf_counter() - started
    list(unused)

    started = time.perf_counter()
    with UsedCpu(os.getsid(0)) as used:
        found, shuffled_bytes = run(setting)
        seconds = time.perf_counter() - started
    results = list(found)
    return Measurement(
        setting.records,
        seconds,
        fixed_seconds,
        used.seconds,
        len(results),
        digest_of(results if comparable is None else comparable(results)),
        shuffled_bytes,
    )


def run_as_script(build: Build, comparable: Comparable | None = None) -> None:
    """Measure with the arguments of the command line and print the measurements as JSON."""
    report(measure(build, parse_setting(), comparable))


def report(measurements: list[Measurement]) -> None:
    print(RESULT_MARK + json.dumps([asdict(each) for each in measurements]), flush=True)


def parse_setting(arguments: list[str] | None = None) -> Setting:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return setting_of(parser.parse_args(arguments))


def add_arguments(
    parser: argparse.ArgumentParser, keys: int | None = Setting().keys, records_help: str = "records to run through"
) -> None:
    """Those that make up a setting. Without a number of `keys`, None stands for the program's own."""
    default = Setting()
    parser.add_argument("--words", type=int, default=default.records, help=f"{records_help} (%(default)s)")
    parser.add_argument("--parallelism", type=int, default=default.parallelism, help="(%(default)s)")
    keys_text = "as many as the program usually has" if keys is None else str(keys)
    parser.add_argument("--keys", type=int, default=keys, help=f"different keys ({keys_text})")
    parser.add_argument("--even", action="store_true", help="even keys; else 80 %% of all have 20 %% of the keys")
    parser.add_argument("--repeat", type=int, default=default.repeats, help="measured runs of a process (%(default)s)")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job")


def setting_of(arguments: argparse.Namespace) -> Setting:
    return Setting(
        arguments.words,
        arguments.parallelism,
        arguments.keys,
        not arguments.even,
        dict(pair.split("=", 1) for pair in arguments.config),
        arguments.repeat,
    )


def arguments_of(setting: Setting) -> list[str]:
    """What `parse_setting` makes `setting` of."""
    arguments = ["--words", str(setting.records), "--parallelism", str(setting.parallelism)]
    arguments += ["--keys", str(setting.keys), *([] if setting.has_skew else ["--even"])]
    arguments += ["--repeat", str(setting.repeats)]
    return arguments + [f"--config={key}={value}" for key, value in setting.config.items()]
