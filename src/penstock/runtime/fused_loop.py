"""The generated loop that does the work of several map, flat_map and filter operators.

    for v0 in values:
        if not (v0 % 3 != 0):
            continue
        v2_0 = v0 * 7919
        append((v2_0, v2_1,))

Each line that can fail belongs to one operator (`Source.sites`), so its number shows the operator and the record of a
failure. The items of a tuple are held in variables of their own; here `v2_1` is a constant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.call_sites import CallSite, InlinedCode, Line
from penstock.runtime.combining import AlignedCombiner
from penstock.runtime.element_copies import IMMUTABLE_TYPES, Copy, as_it_is, copied_unless_tuple
from penstock.runtime.generated_loop import LoopScope, Source, Unbuilt, source_of
from penstock.runtime.inlining import ONE_AT_A_TIME
from penstock.runtime.outputs import DeclaredForm


@dataclass(frozen=True)
class Step:
    """An operator of the loop."""

    kind: type[OperatorDescription]
    function: Callable[[Any], Any]
    copied: Copy
    """Copies the function's results."""
    owner: object
    """The operator; failures of the function are reported as its own."""


_LOOP_VARIABLE = re.compile(r"[vf]\d+(_\w+)?$")
_MOST_LOOPS = 18
"""How deeply loops may be nested; Python allows 20 levels."""
_MOST_LEVELS = 90
"""How deeply blocks may be nested; Python allows 100 levels, and the lines that handle the results take some."""


class _LoopBody:
    """The lines of a loop, built operator by operator. `end` adds the lines that handle the results."""

    def __init__(
        self, lines: list[Line], scope: LoopScope, steps: Sequence[Step], first: int, end: Callable[[_LoopBody], None]
    ) -> None:
        self.lines = lines
        self.scope = scope
        self._steps = steps
        self._end = end
        self._indent = "        "
        self._loops = 1
        self._is_in_body = False
        """True within the statements of a user's generator, where a filter must not use `continue`: that would skip the
        rest of the generator's own statements."""
        self.record: str | Unbuilt = f"v{first}"
        """The variable that holds the record, or the record's items."""
        self.constants: dict[str, Any] = {}
        """The values of variables that never change."""
        self._statements: dict[int, ast.stmt] = {}
        """By operator: the statement of its function that is being added."""

    def add(self, text: str) -> None:
        self.add_line(Line(text))

    def add_line(self, line: Line) -> None:
        self.lines.append(line.indented(self._indent))

    def call(self, text: str, operator: int) -> None:
        """Add a line that does the work of an operator's function."""
        inlined = self.scope.inlined.get(f"f{operator}")
        if inlined is not None and operator in self._statements:
            inlined = replace(inlined, parts=(self._statements[operator],))
        self._add_site(text, operator, inlined)

    def receive(self, text: str, operator: int) -> None:
        """Add a line that handles the results of an operator's function."""
        self._add_site(text, operator, None)

    def _add_site(self, text: str, operator: int, inlined: InlinedCode | None) -> None:
        self.add_line(Line(text, CallSite(self.record_names, self._steps[operator].owner, inlined)))

    @property
    def record_names(self) -> str | tuple[str, ...]:
        return self.record.items if isinstance(self.record, Unbuilt) else self.record

    @contextmanager
    def nested(self, loops: int = 0) -> Iterator[None]:
        """Add lines one level deeper; afterwards level and record are what they were before."""
        before = self._indent, self._loops, self.record
        self._indent += "    "
        self._loops += loops
        yield
        self._indent, self._loops, self.record = before

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
            self.receive(f"for v{at + 1} in r{at}:", at)
            self._add_loop(at, step)

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
            self.record = f"v{at + 1}"
            self._add_copying(at, step, None)
            self.add_steps(at + 1)
        self._is_in_body = outer

    def _add_loop(self, at: int, step: Step) -> None:
        """Add the following operators, in the body of a loop over the results."""
        outer, self._is_in_body = self._is_in_body, False
        with self.nested(loops=1):
            self.record = f"v{at + 1}"
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
            self._statements[at] = statement
            match statement:
                case ast.Expr(ast.Yield(value)):
                    before = self.record
                    self._set_record("None" if value is None else ast.unparse(value), at, step)
                    self.add_steps(at + 1)
                    self.record = before
                case ast.Expr(ast.YieldFrom(value)):
                    self.call(f"for v{at + 1} in {ast.unparse(value)}:", at)
                    self._add_loop(at, step)
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
            self.record = f"v{at + 1}"
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
            self.record = f"v{at + 1}"
        return self.record

    def _add_copying(self, at: int, step: Step, variable_items: list[int] | None) -> None:
        """Add lines that copy the record unless it is immutable: its operator may keep it (`element_copies`).

        `variable_items` are the numbers of the items that are not constants, if the record is a tuple of known length.
        """
        is_immutable_tuple = variable_items == [] or (variable_items and step.copied is copied_unless_tuple)
        if step.copied is as_it_is or is_immutable_tuple:
            return
        self.scope.locals |= {"type_of": type, "tuple_type": tuple, "immutable_types": IMMUTABLE_TYPES}
        # A name for each step: what a type declares holds for the results of its own operator only.
        copied = f"copied{at}"
        self.scope.locals[copied] = step.copied
        current = self.built()
        copying = f"    {current} = {copied}({current})"
        # Most records are immutable, or tuples of immutable items. They should not cost a call.
        if step.copied is copied_unless_tuple:
            self.add(f"if type_of({current}) is not tuple_type:")
            self.receive(copying, at)
            return
        if variable_items is not None:
            are_mutable = (f"type_of({current}[{item}]) not in immutable_types" for item in variable_items)
            self.add(f"if {' or '.join(are_mutable)}:")
            self.receive(copying, at)
            return
        self.add(f"if type_of({current}) is tuple_type:")
        self.add(f"    for item in {current}:")
        self.add("        if type_of(item) not in immutable_types:")
        self.receive(f"        {copying}", at)
        self.add("            break")
        self.add(f"elif type_of({current}) not in immutable_types:")
        self.receive(copying, at)


def _items_of(expression: str) -> list[ast.expr] | None:
    """The items of a tuple; None if the expression is not a tuple, or has an unknown length."""
    with ONE_AT_A_TIME:
        tree = ast.parse(expression, mode="eval").body
    if not isinstance(tree, ast.Tuple) or not tree.elts or any(isinstance(each, ast.Starred) for each in tree.elts):
        return None
    return tree.elts


def generate(steps: Sequence[Step], with_timestamps: bool, name: str, scope: LoopScope, first: int = 0) -> Source:
    """The source of `fused(values, timestamps)`, which returns the output's values and timestamps.

    The names that the source refers to are added to `scope`. The steps before `first` have already run, on columns.
    """
    only_maps = all(step.kind is MapDescription for step in steps[first:])
    each_has_timestamp = with_timestamps and not only_maps
    texts = ["def fused(values, timestamps):", "    out = []", "    append = out.append"]
    if each_has_timestamp:
        scope.locals["zip"] = zip
        texts += ["    out_timestamps = []", "    append_timestamp = out_timestamps.append"]
        texts += [f"    for v{first}, timestamp in zip(values, timestamps):"]
    else:
        texts += [f"    for v{first} in values:"]

    def end(body: _LoopBody) -> None:
        body.add(f"append({body.record_text})")
        if each_has_timestamp:
            body.add("append_timestamp(timestamp)")

    body = _LoopBody(list(map(Line, texts)), scope, steps, first, end)
    body.add_steps(first)
    end_line = Line(f"    return out, {'out_timestamps' if each_has_timestamp else 'timestamps'}")
    suffix = (" with timestamps" if with_timestamps else "") + _start_suffix(first)
    return source_of([*body.lines, end_line], f"chain {name}{suffix}")


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


def generate_combining(
    steps: Sequence[Step],
    combiner: AlignedCombiner,
    form: DeclaredForm | None,
    name: str,
    scope: LoopScope,
    first: int = 0,
) -> Source | None:
    """The source of `fused(values, timestamps)`, which combines the results of the steps and returns their number.

    None if no expression can tell whether results have their declared form. Steps before `first` ran on columns.
    """
    scope.locals |= {"zip": zip, "open_slot": combiner.open_slot, "add_one": combiner.add_one}
    only_maps = all(step.kind is MapDescription for step in steps[first:])
    texts = ["def fused(values, timestamps):", "    records_made = start = end = 0"]
    texts += [f"    for v{first}, timestamp in zip(values, timestamps):", "        if not start <= timestamp < end:"]
    texts += ["            start, end, partials = open_slot(timestamp)", "            get = partials.get"]
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
            body.add(f"if {scope.with_own_builtins(fits)}:")
            with body.nested():
                combine(body)
            body.add("else:")
            body.receive(f"    item = convert({body.record_text})", len(steps) - 1)
            body.add("    add_one(partials, item)")

    def combine(body: _LoopBody) -> None:
        for line in combiner.adding(scope, body.record):
            body.add_line(line)

    body = _LoopBody(list(map(Line, texts)), scope, steps, first, end)
    body.add_steps(first)
    scope.locals["len_of_python"] = len
    end_line = Line(f"    return {'len_of_python(values)' if only_maps else 'records_made'}")
    title = f"chain {name}, and combining before the exchange{_start_suffix(first)}"
    return source_of([*body.lines, end_line], title) if has_form else None
