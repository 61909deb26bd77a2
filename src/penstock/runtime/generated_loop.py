"""Loops that are generated as source: which functions they call, which they inline, and how they are compiled."""

from __future__ import annotations

import ast
import builtins
import linecache
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import length_hint
from types import MethodType
from typing import Any, TypeVar

from penstock.datastream.declared_types import fits
from penstock.datastream.fields import DeclaredKey, FieldAggregation
from penstock.runtime.batch import call_each
from penstock.runtime.call_sites import CallSite, InlinedCode, Line
from penstock.runtime.generator_bodies import GeneratorBody, generator_body
from penstock.runtime.inlining import ONE_AT_A_TIME, SmallFunction, cells_of, small_function

_T = TypeVar("_T")

GENERATED_FILE_PREFIX = "<penstock "


@dataclass(frozen=True)
class Source:
    """The text of a generated function, and the name of the file that it appears to come from in tracebacks."""

    text: str
    filename: str
    sites: dict[int, CallSite] = field(default_factory=dict)
    """By line number."""


def source_of(lines: Iterable[Line], title: str) -> Source:
    """The source of a generated function; `title` tells what it does."""
    numbered = list(enumerate(lines, 1))
    sites = {number: line.site for number, line in numbered if line.site is not None}
    return Source("".join(f"{line.text}\n" for _, line in numbered), f"{GENERATED_FILE_PREFIX}{title}>", sites)


def filled(template: str, **parts: str | Line | list[Line]) -> list[Line]:
    """The lines of a template with its parts in place; lists of lines have lines of their own.

    A part with a call site makes its line one.
    """
    lines: list[Line] = []
    for text in template.splitlines():
        used = {name: parts[name] for _, name, _, _ in string.Formatter().parse(text) if name}
        block = next((part for part in used.values() if isinstance(part, list)), None)
        if block is not None:
            lines += [line.indented(text[: len(text) - len(text.lstrip())]) for line in block]
            continue
        texts = {name: part.text if isinstance(part, Line) else part for name, part in used.items()}
        site = next((part.site for part in used.values() if isinstance(part, Line)), None)
        lines.append(Line(text.format(**texts), site))
    return lines


@dataclass(frozen=True)
class GeneratedLoop:
    """A generated function, ready to run."""

    function: Callable[..., Any]
    has_inlined: bool
    """True if some user functions are inlined, so that the traceback of a failure lacks their frames."""
    source: Source

    def run(self, *arguments: Any) -> Any:
        """Run the loop. A report of a failure finds the loop's call sites in this frame."""
        try:
            return self.function(*arguments)
        except StopIteration as stop:
            own = stop.__traceback__.tb_next if stop.__traceback__ is not None else None
            site = None if own is None else self.source.sites.get(own.tb_lineno)
            if site is not None and site.inlined is not None and site.inlined.is_generator:
                # What Python makes of it when the generator is called.
                raise RuntimeError("generator raised StopIteration") from stop
            raise


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
    inlined: dict[str, InlinedCode] = field(default_factory=dict)
    """The functions that are inlined, by their names in the loop."""
    _globals: dict[str, Any] | None = None
    _has_inlined: bool = False

    def call(self, name: str, function: Callable[..., Any], *arguments: str | Unbuilt) -> str:
        """An expression for `function(*arguments)`; `name` is unique in the loop."""
        aggregation = getattr(function, "__self__", None)
        if self.inlines and type(aggregation) is FieldAggregation and _can_be_expression(aggregation):
            return self._aggregated(name, aggregation, *arguments)
        if self.inlines and isinstance(function, DeclaredKey):
            return self._declared(name, function, *arguments)
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

    def _declared(self, name: str, selector: DeclaredKey, *arguments: str | Unbuilt) -> str:
        """An expression for a key in its declared form. Most keys have it already, and are not converted."""
        selected, key, convert = self.call(name, selector.select, *arguments), f"{name}_key", f"{name}_convert"
        self.locals[convert] = selector.convert
        self._has_inlined = True
        have_form = fits(selector.key_type, key)
        if have_form is None:
            return f"{convert}({selected})"
        is_kept = f"({key} := {selected}) is {key} and ({self.with_own_builtins(have_form)})"
        return f"({key} if {is_kept} else {convert}({key}))"

    def with_own_builtins(self, expression: str) -> str:
        """An expression of Penstock's own, with built-ins under names that no global of the user's module can hide."""
        with ONE_AT_A_TIME:
            tree = ast.parse(expression, mode="eval")
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and hasattr(builtins, node.id):
                    self.locals[f"{node.id}_of_python"] = getattr(builtins, node.id)
                    node.id += "_of_python"
            return ast.unparse(tree)

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
            statements = body.renamed(taken, name)
            self._note_inlined(body, name, statements)
            return statements

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

    def _note_inlined(self, found: SmallFunction | GeneratorBody, name: str, parts: Iterable[ast.AST]) -> None:
        self._has_inlined = True
        is_generator = isinstance(found, GeneratorBody) or found.is_generator
        self.inlined[name] = InlinedCode(found.function, tuple(parts), is_generator)
        if found.uses_globals:
            self._globals = found.function.__globals__
        self.locals.update(cells_of(found.function, name))

    def _inlined(self, small: SmallFunction, name: str, arguments: tuple[str, ...]) -> list[str]:
        with ONE_AT_A_TIME:
            results = small.renamed(arguments, name)
            self._note_inlined(small, name, results)
            return list(map(ast.unparse, results))

    def line(self, text: str, name: str, record: str | tuple[str, ...] | None = "value", owner: object = None) -> Line:
        """A line in which the function called `name` in the loop may fail."""
        return Line(text, CallSite(record, owner, self.inlined.get(name)))

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
        return GeneratedLoop(scope[head.removeprefix("def ").split("(")[0]], self._has_inlined, source)


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
        left = iter(values)
        try:
            results: list[Any] = self._loop.run(left)
        except Exception:
            # Reports of failures show a local variable of this name.
            value = values[len(values) - length_hint(left) - 1]  # noqa: F841
            raise
        return results

    @property
    def expression(self) -> str:
        """The expression that the loop computes for a `value`."""
        return LoopScope(self.inlines).call("f0", self._function, *self._arguments)

    def _compile(self) -> GeneratedLoop:
        scope = LoopScope(self.inlines)
        call = scope.call("f0", self._function, *self._arguments)
        results = scope.line(f"    return [{call} for value in values]", "f0", record=None)
        return scope.compile(source_of([Line("def each(values):"), results], self._title))
