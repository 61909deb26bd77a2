"""The generated loop that does the work of several map, flat_map and filter operators.

    for v0 in values:
        if not (v0 % 3 != 0):
            continue
        v2_0 = v0 * 7919
        append((v2_0, v2_1,))

Each line that can fail belongs to one operator (`FusedSource.call_sites`), so its number shows the operator and the
record of a failure. The items of a tuple are held in variables of their own; here `v2_1` is a constant.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.combining import AlignedCombiner
from penstock.runtime.element_copies import IMMUTABLE_TYPES, Copy, as_it_is, copied_unless_tuple
from penstock.runtime.generated_loop import GENERATED_FILE_PREFIX, LoopScope, Source, Unbuilt
from penstock.runtime.inlining import ONE_AT_A_TIME
from penstock.runtime.outputs import DeclaredForm
from penstock.runtime.retention import keeps_nothing

FUSED_FILE_PREFIX = GENERATED_FILE_PREFIX + "chain "


@dataclass(frozen=True)
class CallSite:
    """A line of generated code in which an operator can fail, because it does the work of a user function."""

    operator: int
    variable: str
    """The local variable that holds the record."""


@dataclass(frozen=True)
class FusedSource(Source):
    call_sites: dict[int, CallSite]
    """By line number."""


@dataclass(frozen=True)
class Step:
    """An operator of the loop."""

    kind: type[OperatorDescription]
    function: Callable[[Any], Any]
    copied: Copy
    """Copies the function's results."""


_LOOP_VARIABLE = re.compile(r"[vf]\d+(_\w+)?$")
_MOST_LOOPS = 18
"""How deeply loops may be nested; Python allows 20 levels."""
_MOST_LEVELS = 90
"""How deeply blocks may be nested; Python allows 100 levels, and the lines that handle the results take some."""


class _LoopBody:
    """The lines of a loop, built operator by operator. `end` adds the lines that handle the results."""

    def __init__(
        self, lines: list[str], scope: LoopScope, steps: Sequence[Step], first: int, end: Callable[[_LoopBody], None]
    ) -> None:
        self.lines = lines
        self.scope = scope
        self.sites: dict[int, CallSite] = {}
        self._steps = steps
        self._end = end
        self._indent = "        "
        self._loops = 1
        self._is_in_body = False
        """True within the statements of a user's generator, where a filter must not use `continue`: that would skip the
        rest of the generator's own statements."""
        self._variable = f"v{first}"
        """The variable that holds the record, or the last record that was built."""
        self.record: str | Unbuilt = self._variable
        self.constants: dict[str, Any] = {}
        """The values of variables that never change."""

    def add(self, text: str) -> None:
        self.lines.append(self._indent + text)

    def call(self, text: str, operator: int) -> None:
        """Add a line in which the operator can fail."""
        self.add(text)
        self.sites[len(self.lines)] = CallSite(operator, self._variable)

    @contextmanager
    def nested(self, loops: int = 0) -> Iterator[None]:
        """Add lines one level deeper; afterwards level and record are what they were before."""
        before = self._indent, self._loops, self._variable, self.record
        self._indent += "    "
        self._loops += loops
        yield
        self._indent, self._loops, self._variable, self.record = before

    @property
    def record_text(self) -> str:
        return self.record.text if isinstance(self.record, Unbuilt) else self.record

    def built(self) -> str:
        """The variable that holds the record. The record is built now, unless it already is."""
        return self.record.build() if isinstance(self.record, Unbuilt) else self.record

    def add_steps(self, at: int) -> None:
        """Add the operators from number `at` on, and the end."""
        if at == len(self._steps):
            self._end(self)
            return
        step = self._steps[at]
        if step.kind is MapDescription:
            self._set_record(self.scope.call(f"f{at}", step.function, self.record), at, step)
            self.add_steps(at + 1)
        elif step.kind is FilterDescription:
            self._add_filter(at, step)
        else:
            self._add_flat_map(at, step)

    def _add_filter(self, at: int, step: Step) -> None:
        condition = self.scope.call(f"f{at}", step.function, self.record)
        if self._is_in_body:
            self.call(f"if {condition}:", at)
            with self.nested():
                self._add_copying(at, step, None)
                self.add_steps(at + 1)
        else:
            self.call(f"if not ({condition}):", at)
            self.add("    continue")
            self._add_copying(at, step, None)
            self.add_steps(at + 1)

    def _add_flat_map(self, at: int, step: Step) -> None:
        record, name = self.built(), f"f{at}"
        yielded = self.scope.yielded(name, step.function, record)
        if yielded is not None:
            self._add_yields(yielded, at, step)
            return
        statements = self._inlined_body(at, step, record)
        if statements is not None:
            outer, self._is_in_body = self._is_in_body, True
            self._add_statements(statements, at, step)
            self._is_in_body = outer
            return
        self.call(f"r{at} = {self.scope.call(name, step.function, record)}", at)
        self.add(f"if r{at} is not None:")
        with self.nested():
            self._add_loop(f"r{at}", at, step)

    def _add_yields(self, yielded: list[str], at: int, step: Step) -> None:
        """Add the following operators once for all yields, each of which is evaluated when it is its turn.

        What the operators do with one result may change the next one.
        """
        turn = f"r{at}"
        self.add(f"for {turn} in {tuple(range(len(yielded)))}:")
        outer, self._is_in_body = self._is_in_body, False
        with self.nested(loops=1):
            *others, last = yielded
            choice = "".join(f"({text}) if {turn} == {number} else " for number, text in enumerate(others))
            self.call(f"v{at + 1} = {choice}({last})", at)
            self._variable = self.record = f"v{at + 1}"
            self._add_copying(at, step, None)
            self.add_steps(at + 1)
        self._is_in_body = outer

    def _add_loop(self, over: str, at: int, step: Step) -> None:
        self.call(f"for v{at + 1} in {over}:", at)
        outer, self._is_in_body = self._is_in_body, False
        with self.nested(loops=1):
            self._variable = self.record = f"v{at + 1}"
            self._add_copying(at, step, None)
            self.add_steps(at + 1)
        self._is_in_body = outer

    def _inlined_body(self, at: int, step: Step, record: str) -> list[ast.stmt] | None:
        """The statements of the step's generator function; None if it must be called."""
        rest = self._steps[at + 1 :]
        further = sum(each.kind is FlatMapDescription for each in rest)
        # A filter is a level, and a function that is called for any number of results is two.
        most_blocks = _MOST_LEVELS - len(self._indent) // 4 - len(rest) - further
        return self.scope.body(f"f{at}", step.function, record, _MOST_LOOPS - self._loops - further, most_blocks)

    def _add_statements(self, statements: list[ast.stmt], at: int, step: Step) -> None:
        """Add the statements of a generator function, with the following operators in place of its yield."""
        for statement in statements:
            match statement:
                case ast.Expr(ast.Yield(value)):
                    before = self._variable, self.record
                    self._set_record("None" if value is None else ast.unparse(value), at, step)
                    self.add_steps(at + 1)
                    self._variable, self.record = before
                case ast.Expr(ast.YieldFrom(value)):
                    self._add_loop(ast.unparse(value), at, step)
                case ast.If(test, body, orelse):
                    self._add_block(f"if {ast.unparse(test)}:", body, at, step, loops=0)
                    if orelse:
                        self._add_block("else:", orelse, at, step, loops=0)
                case ast.For(target, over, body):
                    self._add_block(f"for {ast.unparse(target)} in {ast.unparse(over)}:", body, at, step, loops=1)
                case ast.While(test, body):
                    self._add_block(f"while {ast.unparse(test)}:", body, at, step, loops=1)
                case _:
                    self.call(ast.unparse(statement), at)

    def _add_block(self, head: str, body: list[ast.stmt], at: int, step: Step, loops: int) -> None:
        self.call(head, at)
        with self.nested(loops):
            self._add_statements(body, at, step)

    def _set_record(self, expression: str, at: int, step: Step) -> None:
        """Make the value of `expression` the record. A tuple is taken apart, because it may never have to be built."""
        items = _items_of(expression) if self.scope.inlines else None
        variable_items: list[int] | None = None
        if items is None:
            self.call(f"v{at + 1} = {expression}", at)
            self._variable = self.record = f"v{at + 1}"
        else:
            variable_items = [place for place, item in enumerate(items) if not isinstance(item, ast.Constant)]
            names = tuple(self._variable_of(item, f"v{at + 1}_{place}", at) for place, item in enumerate(items))
            self.record = Unbuilt(names, lambda: self._build(at))
        self._add_copying(at, step, variable_items)

    def _variable_of(self, item: ast.expr, variable: str, at: int) -> str:
        """The variable that holds an item of the record: `variable`, unless the item is already in a variable."""
        if isinstance(item, ast.Constant):
            self.scope.locals[variable] = self.constants[variable] = item.value
            return variable
        text = ast.unparse(item)
        if _LOOP_VARIABLE.match(text):
            return text
        self.call(f"{variable} = {text}", at)
        return variable

    def _build(self, at: int) -> str:
        if isinstance(self.record, Unbuilt):
            self.add(f"v{at + 1} = {self.record.text}")
            self._variable = self.record = f"v{at + 1}"
        return self.record

    def _add_copying(self, at: int, step: Step, variable_items: list[int] | None) -> None:
        """Add lines that copy the record if it is mutable and its operator may keep it (`element_copies`).

        `variable_items` are the numbers of the items that are not constants, if the record is a tuple of known length.
        """
        gives_one = step.kind is not FlatMapDescription
        is_immutable_tuple = variable_items == [] or (variable_items and step.copied is copied_unless_tuple)
        if step.copied is as_it_is or is_immutable_tuple or (gives_one and keeps_nothing(step.function)):
            return
        self.scope.locals |= {"type_of": type, "tuple_type": tuple, "immutable_types": IMMUTABLE_TYPES}
        self.scope.locals["copied"] = step.copied
        current = self.built()
        copying = f"    {current} = copied({current})"
        # Most records are immutable, or tuples of immutable items. They should not cost a call.
        if step.copied is copied_unless_tuple:
            self.add(f"if type_of({current}) is not tuple_type:")
            self.call(copying, at)
            return
        if variable_items is not None:
            are_mutable = (f"type_of({current}[{item}]) not in immutable_types" for item in variable_items)
            self.add(f"if {' or '.join(are_mutable)}:")
            self.call(copying, at)
            return
        self.add(f"if type_of({current}) is tuple_type:")
        self.add(f"    for item in {current}:")
        self.add("        if type_of(item) not in immutable_types:")
        self.call(f"        {copying}", at)
        self.add("            break")
        self.add(f"elif type_of({current}) not in immutable_types:")
        self.call(copying, at)


def _items_of(expression: str) -> list[ast.expr] | None:
    """The items of a tuple; None if the expression is not a tuple, or has an unknown length."""
    with ONE_AT_A_TIME:
        tree = ast.parse(expression, mode="eval").body
    if not isinstance(tree, ast.Tuple) or not tree.elts or any(isinstance(each, ast.Starred) for each in tree.elts):
        return None
    return tree.elts


def generate(steps: Sequence[Step], with_timestamps: bool, name: str, scope: LoopScope, first: int = 0) -> FusedSource:
    """The source of `fused(values, timestamps)`, which returns the output's values and timestamps.

    The names that the source refers to are added to `scope`. The steps before `first` have already run, on columns.
    """
    only_maps = all(step.kind is MapDescription for step in steps[first:])
    each_has_timestamp = with_timestamps and not only_maps
    lines = ["def fused(values, timestamps):", "    out = []", "    append = out.append"]
    if each_has_timestamp:
        scope.locals["zip"] = zip
        lines += ["    out_timestamps = []", "    append_timestamp = out_timestamps.append"]
        lines += [f"    for v{first}, timestamp in zip(values, timestamps):"]
    else:
        lines += [f"    for v{first} in values:"]

    def end(body: _LoopBody) -> None:
        body.add(f"append({body.record_text})")
        if each_has_timestamp:
            body.add("append_timestamp(timestamp)")

    body = _LoopBody(lines, scope, steps, first, end)
    body.add_steps(first)
    lines.append(f"    return out, {'out_timestamps' if each_has_timestamp else 'timestamps'}")
    suffix = (" with timestamps" if with_timestamps else "") + ("" if scope.inlines else ", calling")
    suffix += _start_suffix(first)
    return FusedSource("\n".join(lines) + "\n", f"{FUSED_FILE_PREFIX}{name}{suffix}>", body.sites)


def _start_suffix(first: int) -> str:
    """The part of a file name that distinguishes loops by their first step."""
    return f", from operator {first + 1} on" if first else ""


def _texts(record: str | Unbuilt, constants: dict[str, Any]) -> str | tuple[str, ...]:
    """A record in the form that `declared_types.fits` expects."""
    if isinstance(record, str):
        return record
    return tuple(
        repr(constants[item]) if type(constants.get(item)) in (int, bool, str) else item for item in record.items
    )


def _with_own_builtins(expression: str, scope: LoopScope) -> str:
    """An expression of Penstock's own, with built-ins under names that no global of the user's module can hide."""
    with ONE_AT_A_TIME:
        tree = ast.parse(expression, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and hasattr(builtins, node.id):
                scope.locals[f"{node.id}_of_python"] = getattr(builtins, node.id)
                node.id += "_of_python"
        return ast.unparse(tree)


def generate_combining(
    steps: Sequence[Step],
    combiner: AlignedCombiner,
    form: DeclaredForm | None,
    name: str,
    scope: LoopScope,
    first: int = 0,
) -> FusedSource | None:
    """The source of `fused(values, timestamps)`, which combines the results of the steps and returns their number.

    None if no expression can tell whether results have their declared form. Steps before `first` ran on columns.
    """
    scope.locals |= {"zip": zip, "open_slot": combiner.open_slot, "add_one": combiner.add_one}
    only_maps = all(step.kind is MapDescription for step in steps[first:])
    lines = ["def fused(values, timestamps):", "    records_made = start = end = 0"]
    lines += [f"    for v{first}, timestamp in zip(values, timestamps):", "        if not start <= timestamp < end:"]
    lines += ["            start, end, partials = open_slot(timestamp)", "            get = partials.get"]
    has_form = True

    def end(body: _LoopBody) -> None:
        nonlocal has_form
        if not only_maps:
            body.add("records_made += 1")
        fits = "" if form is None else form.fits(_texts(body.record, body.constants))
        if fits is None:
            has_form = False
        elif form is None or not fits:
            combine(body)
        else:
            scope.locals["convert"] = form.convert
            body.add(f"if {_with_own_builtins(fits, scope)}:")
            with body.nested():
                combine(body)
            body.add("else:")
            body.add(f"    add_one(partials, convert({body.record_text}))")

    def combine(body: _LoopBody) -> None:
        for line in combiner.adding(scope, body.record):
            body.add(line)

    body = _LoopBody(lines, scope, steps, first, end)
    body.add_steps(first)
    scope.locals["len_of_python"] = len
    lines.append(f"    return {'len_of_python(values)' if only_maps else 'records_made'}")
    filename = f"{FUSED_FILE_PREFIX}{name}, and combining before the exchange{_start_suffix(first)}>"
    return FusedSource("\n".join(lines) + "\n", filename, body.sites) if has_form else None
