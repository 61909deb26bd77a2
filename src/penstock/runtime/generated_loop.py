"""Loops that are generated as source: which functions they call, which they inline, and how they are compiled."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, TypeVar

from penstock.datastream.fields import FieldAggregation
from penstock.runtime.batch import call_each
from penstock.runtime.generator_bodies import GeneratorBody, generator_body
from penstock.runtime.inlining import ONE_AT_A_TIME, SmallFunction, cells_of, small_function

_T = TypeVar("_T")

GENERATED_FILE_PREFIX = "<penstock "


@dataclass(frozen=True)
class Source:
    """The text of a generated function, and the name of the file that it appears to come from in tracebacks."""

    text: str
    filename: str


@dataclass(frozen=True)
class GeneratedLoop:
    """A generated function, ready to run."""

    run: Callable[..., Any]
    has_inlined: bool
    """True if some user functions are inlined, so that the traceback of a failure lacks their frames."""


@dataclass(frozen=True)
class Unbuilt:
    """A tuple that a loop has not built yet: it only has the items, in variables."""

    items: tuple[str, ...]
    build: Callable[[], str]
    """Adds a line to the loop that builds the tuple, and returns the variable that holds it."""

    @property
    def text(self) -> str:
        return f"({', '.join(self.items)},)"


@dataclass
class LoopScope:
    """The names that a generated loop knows. Functions that can be inlined are inlined, unless `inlines` is False."""

    inlines: bool = True
    locals: dict[str, Any] = field(default_factory=dict)
    _globals: dict[str, Any] | None = None
    _has_inlined: bool = False

    def call(self, name: str, function: Callable[..., Any], *arguments: str | Unbuilt) -> str:
        """An expression for `function(*arguments)`; `name` is unique in the loop."""
        aggregation = getattr(function, "__self__", None)
        if self.inlines and type(aggregation) is FieldAggregation and _can_be_expression(aggregation):
            return self._aggregated(name, aggregation, *arguments)
        plain, taken = self._unbound(name, function, arguments)
        small = self._small(plain, len(taken))
        if small is None or small.is_generator:
            self.locals[name] = function
            return f"{name}({', '.join(map(_built, arguments))})"
        texts = (
            each.text if isinstance(each, Unbuilt) and small.only_picks(at, len(each.items)) else _built(each)
            for at, each in enumerate(taken)
        )
        return self._inlined(small, name, tuple(texts))[0]

    def _aggregated(self, name: str, aggregation: FieldAggregation, held: str | Unbuilt, value: str | Unbuilt) -> str:
        """An expression for sum, min or max of a field of tuples. For other elements it calls the aggregation."""
        self.locals |= {"type_of": type, "tuple_type": tuple, "len_of_python": len, name: aggregation.reduce}
        self._has_inlined = True
        at, one, other = int(aggregation.field), _built(held), _built(value)
        mine, theirs = f"{one}[{at}]", f"{other}[{at}]"
        is_better = f"{theirs} {'<' if aggregation.kind in ('min', 'min_by') else '>'} {mine}"
        match aggregation.kind:
            case "sum":
                quick = _with_item(one, at, f"{mine} + {theirs}")
            case "min" | "max":
                quick = f"{_with_item(one, at, theirs)} if {is_better} else {one}"
            case "min_by" | "max_by":
                quick = f"{other} if {is_better} else {one}"
        are_tuples = f"type_of({one}) is tuple_type is type_of({other})"
        return f"(({quick}) if {are_tuples} else {name}({one}, {other}))"

    def yielded(self, name: str, function: Callable[..., Any], argument: str) -> list[str] | None:
        """Expressions for the values that a generator function yields for `argument`; None if it must be called."""
        plain, taken = self._unbound(name, function, (argument,))
        small = self._small(plain, len(taken))
        return None if small is None or not small.is_generator else self._inlined(small, name, taken)

    def body(
        self, name: str, function: Callable[..., Any], argument: str, most_loops: int, most_blocks: int
    ) -> list[ast.stmt] | None:
        """The statements of a generator function for `argument`; None if it must be called."""
        plain, taken = self._unbound(name, function, (argument,))
        with ONE_AT_A_TIME:
            body = generator_body(plain, len(taken)) if self.inlines else None
            if body is None or body.loops > most_loops or body.blocks > most_blocks:
                return None
            if not self._finds_globals_of(body):
                return None
            self._note_inlined(body, name)
            return body.renamed(taken, name)

    def _unbound(self, name: str, function: Any, arguments: tuple[_T, ...]) -> tuple[Any, tuple[_T | str, ...]]:
        """A bound method as a plain function, with the object as its first argument; other functions as they are."""
        if not isinstance(function, MethodType):
            return function, arguments
        self.locals[f"self_{name}"] = function.__self__
        return function.__func__, (f"self_{name}", *arguments)

    def _small(self, function: Callable[..., Any], parameters: int) -> SmallFunction | None:
        small = small_function(function, parameters) if self.inlines else None
        return None if small is None or not self._finds_globals_of(small) else small

    def _finds_globals_of(self, found: SmallFunction | GeneratorBody) -> bool:
        """True if the function's globals can be those of the loop: a loop has the globals of only one module."""
        return not found.uses_globals or self._globals is None or found.function.__globals__ is self._globals

    def _note_inlined(self, found: SmallFunction | GeneratorBody, name: str) -> None:
        self._has_inlined = True
        if found.uses_globals:
            self._globals = found.function.__globals__
        self.locals.update(cells_of(found.function, name))

    def _inlined(self, small: SmallFunction, name: str, arguments: tuple[str, ...]) -> list[str]:
        self._note_inlined(small, name)
        with ONE_AT_A_TIME:
            return small.texts(arguments, name)

    def compile(self, source: Source) -> GeneratedLoop:
        """The function that `source` defines."""
        text, filename = source.text, source.filename
        # Tracebacks take the lines that they show from this cache.
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        # Names that are default arguments are local variables of the loop, which are faster than globals.
        names = "".join(f", {name}={name}" for name in self.locals)
        head, body = text.split("):", 1)
        scope: dict[str, Any] = dict(self.locals)
        exec(compile(f"{head}{names}):{body}", filename, "exec"), self._globals or {}, scope)
        return GeneratedLoop(scope[head.removeprefix("def ").split("(")[0]], self._has_inlined)


def _built(argument: str | Unbuilt) -> str:
    return argument.build() if isinstance(argument, Unbuilt) else argument


_MOST_ITEMS = 16
"""How many items an expression for a tuple may list one by one."""


def _can_be_expression(aggregation: FieldAggregation) -> bool:
    return isinstance(aggregation.field, int) and 0 <= aggregation.field < _MOST_ITEMS


def _with_item(record: str, at: int, item: str) -> str:
    """An expression for a tuple with one item replaced. Usually that is the last item; then nothing is sliced."""
    items = "".join(f"{record}[{each}], " for each in range(at))
    longer = f"(*{record}[:{at}], {item}, *{record}[{at + 1}:])"
    return f"(({items}{item},) if len_of_python({record}) == {at + 1} else {longer})"


class EachLoop:
    """`call_each` for one function, which is inlined if possible. `further` arguments are the same for all values."""

    def __init__(self, function: Callable[..., Any], title: str, *further: int, inlines: bool = True) -> None:
        self._function = function
        self.inlines = inlines
        self._call: Callable[[Any], Any] = function if not further else lambda value: function(value, *further)
        self._arguments = "value", *map(str, further)
        self._title = title
        self._loop: GeneratedLoop | None = None

    def __call__(self, values: list[Any]) -> list[Any]:
        if self._loop is None:
            self._loop = self._compile()
        if not self._loop.has_inlined:
            return call_each(self._call, values)
        try:
            results: list[Any] = self._loop.run(values)
        except Exception:
            call_each(self._call, values)  # Fails again, in frames that show the record and the user's code.
            raise
        return results

    @property
    def expression(self) -> str:
        """The expression that the loop computes for a `value`."""
        return LoopScope(self.inlines).call("f0", self._function, *self._arguments)

    def _compile(self) -> GeneratedLoop:
        scope = LoopScope(self.inlines)
        call = scope.call("f0", self._function, *self._arguments)
        text = f"def each(values):\n    return [{call} for value in values]\n"
        return scope.compile(Source(text, f"{GENERATED_FILE_PREFIX}{self._title}>"))
