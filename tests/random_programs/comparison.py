"""Runs a random program in several ways, in this process, and compares what it gives and what it does."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.random_programs.generator import Program

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime import outputs

MODULE = "random_program"
_FILE = f"<{MODULE}>"


@dataclass(frozen=True)
class Way:
    """How a program runs. The default is the plain way: every function is called, nothing else is done."""

    parallelism: int = 1
    inlines: bool = False
    combines: bool = False
    columns: bool = False
    on_disk: bool = False

    def plain(self) -> Way:
        """The plain way whose results and effects must be the same, in the same order."""
        return Way(self.parallelism, combines=self.combines)

    def settings(self) -> dict[str, str]:
        return {
            "execution.target": "inline",
            "restart-strategy.type": "none",
            "penstock.inline-functions.enabled": str(self.inlines).lower(),
            "penstock.combine.enabled": str(self.combines).lower(),
            "penstock.columnar-exchange.enabled": str(self.columns).lower(),
            "state.backend.type": "rocksdb" if self.on_disk else "hashmap",
        }


@dataclass(frozen=True)
class Outcome:
    """The results, or the error, and what the functions have noted, in order."""

    results: tuple[str, ...]
    error: str | None
    effects: tuple[str, ...]


WAYS = [
    Way(parallelism, inlines=inlines, combines=combines, columns=columns, on_disk=on_disk)
    for parallelism in (1, 2, 4)
    for combines in (False, True)
    for inlines, columns, on_disk in [
        (True, False, False),
        (True, True, False),
        (True, False, True),
        (False, True, True),
    ]
]


@contextmanager
def _columns_at_once() -> Iterator[None]:
    """Send elements in columns from the first one on."""
    names = {"_LEAST_RECORDS": 1, "_MANY_RECORDS": 0, "_MANY_NUMBERS": 0}
    before = {name: getattr(outputs, name) for name in names}
    for name, value in names.items():
        setattr(outputs, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(outputs, name, value)


def run(program: Program, way: Way) -> Outcome:
    """Run a program from the start: with a module, and so with globals, of its own."""
    text = program.text
    linecache.cache[_FILE] = (len(text), None, text.splitlines(True), _FILE)  # Where functions find their source.
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    try:
        exec(compile(text, _FILE, "exec"), module.__dict__)
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(way.settings()))
        env.set_parallelism(way.parallelism)
        results: tuple[str, ...] = ()
        error = None
        with _columns_at_once():
            try:
                results = tuple(map(repr, module.build(env).execute_and_collect()))
            except Exception as failure:
                error = str(failure) if sys.version_info >= (3, 11) else str(failure).splitlines()[0]
        return Outcome(results, error, tuple(module.EFFECTS))
    finally:
        del sys.modules[MODULE]


def difference(program: Program, way: Way, plain: Outcome | None = None) -> str | None:
    """What a program does otherwise than in the plain way; None if nothing."""
    expected = run(program, way.plain()) if plain is None else plain
    found = run(program, way)
    if found == expected:
        return None
    parts = ("error", "results", "effects")
    shown = [f"{part}\n  plain: {getattr(expected, part)}\n  found: {getattr(found, part)}"
             for part in parts if getattr(expected, part) != getattr(found, part)]  # fmt: skip
    return f"{way}\n" + "\n".join(shown)


def combining_difference(program: Program, parallelism: int, plain: Outcome) -> str | None:
    """What combining changes: the order of results may be another, and functions of windows are called otherwise."""
    found = run(program, Way(parallelism, combines=True))
    if plain.error is not None or found.error is not None:
        return None  # Which of several failures comes first depends on when elements are reduced.
    if sorted(found.results) == sorted(plain.results):
        return None
    return f"combining, parallelism {parallelism}\n  plain: {plain.results}\n  found: {found.results}"


def smallest(program: Program, way: Way) -> Program:
    """The program without the steps and elements that it needs not to differ."""
    for at in reversed(range(len(program.steps))):
        shorter = program.without(at)
        if shorter.steps and difference(shorter, way) is not None:
            program = shorter
    for at in reversed(range(len(program.elements))):
        fewer = replace(program, elements=program.elements[:at] + program.elements[at + 1 :])
        if fewer.elements and difference(fewer, way) is not None:
            program = fewer
    return program


def check(program: Program, ways: list[Way]) -> str | None:
    """What differs in any of the ways, with the smallest program that shows it; None if nothing does."""
    plain: dict[Way, Outcome] = {}
    for way in ways:
        if way.plain() not in plain:
            plain[way.plain()] = run(program, way.plain())
        found = difference(program, way, plain[way.plain()])
        # Whether the end of the input comes with its last elements or in an epoch of its own depends on time, and with
        # it the order in which several inputs are read. What generated code does wrong, it does every time.
        if found is not None and difference(program, way) is not None:
            least = smallest(program, way)
            return f"seed {program.seed}: {difference(least, way) or found}\n{least.text}"
    for way in {each for each in plain if not each.combines and program.combines}:
        found = combining_difference(program, way.parallelism, plain[way])
        if found is not None and combining_difference(program, way.parallelism, run(program, way)) is not None:
            return f"seed {program.seed}: {found}\n{program.text}"
    return None
