"""The programs that are measured, by name, each in a module of that name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from benchmarks.job import Setting, digest_of


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
    """False if it uses what PyFlink's API lacks, so that PyFlink cannot run it."""


PROGRAMS = {
    "word_count": Program(keys=1_000, has_spread=True, has_even_run=True),
    "stateless_chain": Program(),
    "session_windows": Program(),
    "sliding_windows": Program(keys=1_000, has_spread=True),
    "keyed_count": Program(keys=1_000_000),
    "keyed_timers": Program(keys=1_000_000),
    "connected_join": Program(),
    "interval_join": Program(is_pyflink=False),
    "broadcast_rules": Program(keys=1_000),
    **{f"nexmark.{query}": Program() for query in ("q0", "q1", "q2", "q5", "q7", "q8", "q11", "q12")},
}
NAMES = list(PROGRAMS)


def chosen(names: list[str]) -> list[str]:
    """The programs that are meant; a package's name stands for all its programs, nothing for all there are."""
    if not names:
        return NAMES
    return [name for wanted in names for name in NAMES if name == wanted or name.startswith(f"{wanted}.")]


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name}")


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
