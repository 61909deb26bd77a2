"""The programs that are measured, by name; most are in a module of that name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import Any

from benchmarks.job import Setting, digest_of, results_of
from benchmarks.peers.installation import BENCH


@dataclass(frozen=True)
class Program:
    """What is special about a program."""

    keys: int | None = None
    """How many different keys it has, unless the command line says otherwise. None: that is no setting of it."""
    has_spread: bool = False
    """True if its keys may be even or 80/20."""
    has_even_run: bool = False
    """True if a run of everything measures it with even keys, too."""
    is_pyflink: bool = True
    """False if PyFlink does not run it: it uses what PyFlink's API lacks, or formats that it has no jar of."""
    module: str | None = None
    """The program whose code it is, with a configuration of its own. None: it has code of its own."""
    config: dict[str, str] = field(default_factory=dict)
    """Settings of the job, on every system that has them."""
    needs_broker: bool = False
    """True if it reads and writes topics of a Kafka broker."""
    times_records: float = 1
    """It gets so many times as many records as others: fast ones enough to be timed, slow ones not too many."""


_FORMATS = ("text", "csv", "json", "parquet")
_QUERIES = {"q0": 4, "q1": 4, "q2": 4, "q5": 1, "q7": 1, "q8": 4, "q11": 1, "q12": 1}
_CHECKPOINTED = {
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.dir": (BENCH / "checkpoints").as_uri(),
}

PROGRAMS = {
    "word_count": Program(keys=1_000, has_spread=True, has_even_run=True, times_records=4),
    "stateless_chain": Program(times_records=8),
    "session_windows": Program(),
    "sliding_windows": Program(keys=1_000, has_spread=True),
    "keyed_count": Program(keys=1_000_000, times_records=2),
    "keyed_timers": Program(keys=1_000_000),
    "connected_join": Program(),
    "interval_join": Program(is_pyflink=False),
    "broadcast_rules": Program(keys=1_000, times_records=2),
    "hot_key": Program(keys=1_000, times_records=2),
    # As the Java versions run: rows are not copied between functions.
    "wide_records": Program(keys=10_000, times_records=0.2, config={"pipeline.object-reuse": "true"}),
    # Long enough for several checkpoints.
    "keyed_count_checkpointed": Program(keys=1_000_000, module="keyed_count", config=_CHECKPOINTED, times_records=6),
    "keyed_count_on_disk": Program(keys=100_000, module="keyed_count", config={"state.backend.type": "rocksdb"}),
    "small_jobs": Program(times_records=0.2),
    "kafka_to_kafka": Program(keys=10_000, is_pyflink=False, needs_broker=True, config=_CHECKPOINTED, times_records=2),
    **{f"files.{kind}": Program(keys=1_000, has_spread=True, is_pyflink=False, times_records=2) for kind in _FORMATS},
    **{f"nexmark.{query}": Program(times_records=times) for query, times in _QUERIES.items()},
}
NAMES = list(PROGRAMS)


def chosen(names: list[str]) -> list[str]:
    """The programs that are meant; a package's name stands for all its programs, nothing for all there are."""
    if not names:
        return NAMES
    return [name for wanted in names for name in NAMES if name == wanted or name.startswith(f"{wanted}.")]


def code_of(name: str) -> str:
    """The program whose code runs: the name of its module and of its versions for peers."""
    return PROGRAMS.get(name, Program()).module or name


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{code_of(name)}")


def run_in_process(name: str, setting: Setting) -> list[Any]:
    """Run a program in this process, with its own configuration; what must be the same in every run."""
    module = module_of(name)
    setting = replace(setting, config={**PROGRAMS.get(name, Program()).config, **setting.config})
    prepare(name, setting)
    results = list(module.run(setting)[0]) if hasattr(module, "run") else results_of(module.build, setting)
    return list(module.comparable(results)) if hasattr(module, "comparable") else results


def prepare(name: str, setting: Setting) -> None:
    """Make the files that a program reads, unless they are there."""
    module = module_of(name)
    if hasattr(module, "prepare"):
        module.prepare(setting)


@dataclass(frozen=True)
class RightAnswer:
    """The answer in plain Python."""

    results: int
    digest: str


def right_answer(name: str, setting: Setting) -> RightAnswer:
    return _right_answer(name, setting.records, setting.parallelism, setting.keys, setting.has_skew)


@cache
def _right_answer(name: str, records: int, parallelism: int, keys: int, has_skew: bool) -> RightAnswer:
    expected = module_of(name).expected(Setting(records, parallelism, keys, has_skew))
    return RightAnswer(len(expected), digest_of(expected))
