"""Makes one loop over a batch from the body of a process function, with its state in local variables.

    def process_element(self, value, ctx):                 for key, value in zip(keys, values):
        count = (self.count.value() or 0) + 1                  count = (entries.get(key) or 0) + 1
        self.count.update(count)                               entries[key] = count
        yield value[0], count                                  append((value[0], count))

For a function that does little, most of the time goes into calls: of the function itself, of its generator, and one for
each access to state. Here the body is part of the loop (`loop_bodies` says which bodies may be), and accesses to value,
list and map state are operations on the dictionaries of their tables. The loop is made from the function's syntax tree
and keeps its line numbers and the name of its file, so a failure shows the user's own lines.

Tuples in columns need not be assembled: then `value[0]` is a variable of the loop.

Other code may use the same state, key, timestamp and timers while the loop runs: a method of the function, a property,
an object that it holds. The loop does not try to find out. It sets the current key and timestamp for every element, and
what it keeps in local variables is what everyone else works on: the dictionaries of the state tables, and lists that
the timer queue empties before it does anything else. An attribute may hold another state at any time, so each access
compares it first.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.datastream.output_tag import OutputTag
from penstock.runtime.element_copies import IMMUTABLE_TYPES
from penstock.runtime.inlining import ONE_AT_A_TIME, source_of
from penstock.runtime.loop_bodies import UnsuitableBodyError, check_body, is_generator
from penstock.runtime.loop_broadcast import BroadcastLookups
from penstock.runtime.loop_columns import InColumns, LoopColumns, Position, columns_for
from penstock.runtime.loop_placement import LateColumns, is_wanted_whole, only_sets_timers
from penstock.runtime.loop_states import READS, WRITES, InlinedState, inlined_states
from penstock.runtime.loop_syntax import OWN, assignment, expression, has_one_argument, indented, names_in, parsed
from penstock.runtime.state.direct_views import DirectMapState, DirectValueState
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable
from penstock.runtime.timers import time_of_timer

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns
    from penstock.runtime.timers import KeyTimerQueue, TakenTimers

RECORD = "penstock_record"
"""The local variable of a generated loop that holds the element; reports of failures show it."""

_USERS = "users_"
"""The prefix of the function's own local variables in the loop."""
_EVENT_TIMERS = {"register_event_time_timer": "add", "delete_event_time_timer": "remove"}
_WITHOUT_TIMERS = {"output", "time_domain", "get_broadcast_state"}
"""Attributes of a context that have nothing to do with timers."""
_NEVER_NONE = (ast.BinOp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.Compare, ast.ListComp)
"""Expressions that do not give None, which would clear a value state."""


@dataclass(frozen=True)
class Surroundings:
    """What a body refers to besides its element."""

    backend: KeyedStateBackend
    context: Any
    """The context that the function gets."""
    has_keys: bool
    """True if the elements have keys. Those of a broadcast input have none, even if the function has keyed state."""
    event_timers: KeyTimerQueue | None
    """The queue of the function's event-time timers; None if it cannot have any."""
    emit_side: Callable[[str, Any, int | None], None]
    check_results: Callable[[Any], None]
    """Raises if the function returned something that cannot be iterated over."""
    copied: Callable[[Any], Any] | None
    """Copies an element that the function emits; None if elements need not be copied."""


@dataclass(frozen=True)
class KeyedLoop:
    """Has the same effect on a batch as a call of the function for each element."""

    text: str
    """The loop as Python source."""
    _loop: Callable[..., None]
    """The loop that notes writes to all tables that track changes."""
    _arguments: tuple[Any, ...]
    _tables: tuple[StateTable, ...]
    _function: Any
    _inlined: tuple[tuple[str, Any], ...]
    """Names of the function's attributes, and the states that they held when the loop was made."""
    may_use_timers: bool
    """True if the body itself uses the timer service; other code that it runs may do so in any case."""
    _deferred_timers: KeyTimerQueue | None
    """The queue for the timers that the loop gathers; None if the loop sets timers itself."""
    _columns: LoopColumns | None
    """The columns that the loop needs; None if it runs over elements that are not in columns."""
    _variants: dict[tuple[bool, ...], Callable[..., None]]
    """Compiled loops, by whether they note their writes to each of the tables."""
    _make_variant: Callable[[tuple[bool, ...]], Callable[..., None]]

    def fits(self) -> bool:
        """False if an attribute of the function no longer holds the state that is inlined, so that the loop is slow."""
        attributes = self._function.__dict__
        return all(attributes.get(name) is state for name, state in self._inlined)

    def run(
        self,
        keys: Iterable[Any],
        values: list[Any],
        timestamps: Iterable[int | None],
        append: Callable[[Any], None],
        append_time: Callable[[int | None], None],
    ) -> None:
        self._run(keys, append, append_time, keys, values, timestamps)

    def run_taken(
        self, taken: TakenTimers, append: Callable[[Any], None], append_time: Callable[[int | None], None]
    ) -> None:
        """Run a loop that was made for `on_timer`."""
        keys, timestamps = taken.keys, taken.timestamps
        self._run(list(keys), append, append_time, taken.keys_in_turn, timestamps, timestamps)

    def run_columns(
        self, columns: Columns, append: Callable[[Any], None], append_time: Callable[[int | None], None]
    ) -> int:
        """Run a loop that was made for columns; how many times it had to find its position to read single items."""
        assert self._columns is not None
        lists, late = self._columns.taken_from(columns)
        position = Position(lists[0])
        try:
            self._run(self._columns.keys_among(lists), append, append_time, position, position.first, *lists[1:], *late)
        except Exception:
            at = position.now()
            if at >= 0:  # Negative if it failed before the first element, for example because state could not be read.
                # Reports of failures show a local variable of this name.
                value = columns.taken(slice(at, at + 1)).batch().values[0]  # noqa: F841
            raise
        return position.times_asked

    def _run(self, keys_of_batch: Iterable[Any], *arguments: Any) -> None:
        noted = tuple([table.wants_notes(VOID_NAMESPACE) for table in self._tables])
        loop = self._variants.get(noted) or self._variant(noted)
        opened: list[Any] = []
        for table in self._tables:
            table.keep_open()
            opened += (table.open_namespace(VOID_NAMESPACE, keys_of_batch), table.open_changes(VOID_NAMESPACE))
        gathering = () if self._deferred_timers is None else self._deferred_timers.gathering()
        try:
            loop(*arguments, *self._arguments, *gathering, *opened)
        finally:
            if self._deferred_timers is not None:
                self._deferred_timers.add_gathered()
            for table in self._tables:
                table.close_namespace(VOID_NAMESPACE)

    def _variant(self, noted: tuple[bool, ...]) -> Callable[..., None]:
        try:
            with ONE_AT_A_TIME:
                loop = self._make_variant(noted)
        except SystemError:  # As in `keyed_loop`. Noting more writes than necessary does no harm.
            loop = self._loop
        self._variants[noted] = loop
        return loop


def keyed_loop(
    method: Callable[..., Any], around: Surroundings, with_timestamps: bool, in_columns: InColumns | None = None
) -> KeyedLoop | None:
    """The loop for a bound method `(self, value, ctx)` of an opened function; None if the method must be called.

    With `in_columns`, None also if the tuples must be assembled.
    """
    if not isinstance(method, MethodType) or not isinstance(method.__func__, FunctionType):
        return None
    node = source_of(method.__func__, parameters=3)
    if not isinstance(node, ast.FunctionDef) or not hasattr(method.__self__, "__dict__"):
        return None
    try:
        with ONE_AT_A_TIME:
            return _LoopMaker(method.__self__, method.__func__, node, around, with_timestamps, in_columns).make()
    # CPython raises a SystemError if another thread parses Python at the same time: the program may do that.
    except (UnsuitableBodyError, SystemError):
        return None


# --- making the loop -------------------------------------------------------------------------------------------------


class _LoopMaker:
    """Makes the loop for one method of an opened function."""

    def __init__(
        self,
        function: Any,
        method: FunctionType,
        node: ast.FunctionDef,
        around: Surroundings,
        with_timestamps: bool,
        in_columns: InColumns | None,
    ) -> None:
        self._function = function
        self._method = method
        self._node = node
        self._around = around
        self._with_timestamps = with_timestamps
        self._in_columns = in_columns

    def make(self) -> KeyedLoop:
        code = self._method.__code__
        parameters = code.co_varnames[:3]
        local_names = {*code.co_varnames[3:], *code.co_cellvars}.difference(parameters)
        body = self._checked_body(local_names)
        around = self._around
        states = inlined_states(body, parameters[0], self._function, around.backend) if around.has_keys else {}
        broadcast = BroadcastLookups(parameters, self._function, self._method, self._around.context)
        rewriting = _Rewriting(
            parameters,
            local_names,
            code.co_freevars,
            states,
            broadcast,
            self._around,
            self._with_timestamps,
            None if self._in_columns is None else self._in_columns.items,
            only_sets_timers(body, parameters[2]),
        )
        statements = rewriting.block(body)
        if self._in_columns is not None and (rewriting.value_is_set or is_wanted_whole(body, parameters[1])):
            raise UnsuitableBodyError
        if rewriting.value_is_set:
            statements[:0] = parsed(f"{_USERS}{rewriting.value_name} = {RECORD}", self._node)
        # Always: any code that the body runs, an operator of an element for example, may use state or the context.
        timestamp = f"{OWN}timestamp" if self._with_timestamps else "None"
        current = f"{OWN}backend.current_key = {OWN}key\n{OWN}context.element_timestamp = {timestamp}"
        statements[:0] = parsed(current, self._node)
        columns = None if self._in_columns is None else columns_for(statements, self._in_columns)
        if columns is not None:
            statements = LateColumns(columns.late).put_into(statements)
        return self._assembled(statements, states, broadcast, columns, rewriting)

    def _checked_body(self, local_names: set[str]) -> list[ast.stmt]:
        """The statements of the method without its docstring; raises UnsuitableBodyError if it must be called."""
        if any(name.startswith((OWN, _USERS)) for name in names_in([self._node])):
            raise UnsuitableBodyError
        body = self._node.body[1:] if ast.get_docstring(self._node) is not None else self._node.body
        check_body(body, local_names, is_generator(self._node))
        return body

    def _assembled(
        self,
        body: list[ast.stmt],
        states: dict[str, InlinedState],
        broadcast: BroadcastLookups,
        columns: LoopColumns | None,
        rewriting: _Rewriting,
    ) -> KeyedLoop:
        by_table = {state.number: state for state in states.values()}
        tables = [by_table[number] for number in sorted(by_table)]
        has_deferred_timers = rewriting.has_deferred_timers
        attributes = self._function.__dict__
        fixed = self._fixed_names(body, {**broadcast.names, **{f"held_{name}": attributes[name] for name in states}})
        arguments = [*fixed, *([f"{OWN}add_time", f"{OWN}add_key"] if has_deferred_timers else [])]
        for state in tables:
            arguments += [state.entries_name, state.changes_name]
        module = self._module(body, columns, arguments)
        compiled = self._compiled(module)

        def variant(noted: tuple[bool, ...]) -> Callable[..., None]:
            left_out = {state.changes_name for state, is_noted in zip(tables, noted, strict=True) if not is_noted}
            return self._compiled(_WithoutNotes(left_out).visit(copy.deepcopy(module)))

        return KeyedLoop(
            text=ast.unparse(module),
            _loop=compiled,
            _variants={tuple(state.table.tracks_changes for state in tables): compiled},
            _make_variant=variant,
            _arguments=tuple(fixed.values()),
            _tables=tuple(state.table for state in tables),
            _function=self._function,
            _inlined=tuple((name, attributes[name]) for name in states),
            may_use_timers=rewriting.may_use_timers,
            _deferred_timers=self._around.event_timers if has_deferred_timers else None,
            _columns=columns,
        )

    def _module(self, body: list[ast.stmt], columns: LoopColumns | None, further_arguments: list[str]) -> ast.Module:
        """A function with the method's name, which runs the body in a loop."""
        if columns is None:
            lists = ["keys", "values", "timestamps"]
            element = [f"{OWN}key", RECORD, f"{OWN}timestamp"][: 3 if self._with_timestamps else 2]
            zipped, of_batch = lists[: len(element)], lists
        else:
            element = [f"{OWN}{name}" for name in columns.in_lists]
            zipped = [f"list_{name}" for name in columns.in_lists]
            of_batch = ["position", *zipped, *(f"column_{name}" for name in columns.late)]
        arguments = [*(f"{OWN}{name}" for name in ("append", "append_time", *of_batch)), *further_arguments]
        zip_them = f"{OWN}zip({', '.join(f'{OWN}{name}' for name in zipped)})"
        loop = f"    for {', '.join(element)}, in {zip_them}:\n        pass"
        # All lines must be the user's: what is around the body is located where the method begins.
        statements = parsed(f"def {self._node.name}({', '.join(arguments)}):\n{loop}", self._node)
        function = statements[0]
        assert isinstance(function, ast.FunctionDef) and isinstance(function.body[0], ast.For)
        function.body[0].body = body or [ast.Pass()]
        return ast.fix_missing_locations(ast.Module(statements, []))

    def _compiled(self, module: ast.Module) -> Callable[..., None]:
        scope: dict[str, Any] = {}
        code = compile(module, self._method.__code__.co_filename, "exec", dont_inherit=True)
        exec(code, self._method.__globals__, scope)
        loop: Callable[..., None] = scope[self._node.name]
        return loop

    def _fixed_names(self, body: list[ast.stmt], further: dict[str, Any]) -> dict[str, Any]:
        """The names in the loop that stand for the same object in all batches, with these objects."""
        around = self._around
        cells = zip(self._method.__code__.co_freevars, self._method.__closure__ or (), strict=True)
        known = {
            "self": self._function,
            "backend": around.backend,
            "context": around.context,
            "event_timers": around.event_timers,
            "emit_side": around.emit_side,
            "check_results": around.check_results,
            "copied": around.copied,
            "immutable": IMMUTABLE_TYPES,
            "void": VOID_NAMESPACE,
            "OutputTag": OutputTag,
            "absent": object(),
            "no_map": {},
            "time_of_timer": time_of_timer,
            "type": type,
            "int": int,
            "tuple": tuple,
            "len": len,
            "isinstance": isinstance,
            **{f"cell_{variable}": cell for variable, cell in cells},
            **further,
        }
        used = names_in(body)
        return {
            f"{OWN}{name}": value
            for name, value in {"zip": zip, **known}.items()
            if name == "zip" or f"{OWN}{name}" in used
        }


class _WithoutNotes(ast.NodeTransformer):
    """Removes the statements that `InlinedState.noting` makes, for some tables."""

    def __init__(self, changes_names: set[str]) -> None:
        self._changes_names = changes_names

    def visit_If(self, node: ast.If) -> ast.AST | None:
        match node.test:
            case ast.Compare(_, [ast.NotIn()], [ast.Name(name)]) if name in self._changes_names:
                return None
        return self.generic_visit(node)


class _Rewriting(ast.NodeTransformer):
    """Turns the statements of a body into those of the loop."""

    def __init__(
        self,
        parameters: tuple[str, ...],
        local_names: set[str],
        free_names: Iterable[str],
        states: dict[str, InlinedState],
        broadcast: BroadcastLookups,
        around: Surroundings,
        with_timestamps: bool,
        items: int | None,
        defers_timers: bool,
    ) -> None:
        self._self, self.value_name, self._ctx = parameters
        self._local_names = local_names
        self._free_names = set(free_names)
        self._states = states
        self._broadcast = broadcast
        self._around = around
        self._with_timestamps = with_timestamps
        self._items = items
        """How many items an element in columns has; None for elements that are not in columns."""
        self._defers_timers = defers_timers
        self.may_use_timers = False
        self.has_deferred_timers = False
        """True if the loop gathers timers, which are set after it."""
        self._comprehensions = 0
        """How many comprehensions are around the current expression: an assignment in there may not be allowed."""
        self.value_is_set = False
        """True if the body assigns to the parameter that holds the element."""

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        stored = {node.id for root in body for node in ast.walk(root) if _is_stored(node)}  # type: ignore[attr-defined]
        self.value_is_set = self.value_is_set or self.value_name in stored
        # A comprehension may have a variable of the same name as one of an enclosing function.
        if self._self in stored or self._ctx in stored or not self._free_names.isdisjoint(stored):
            raise UnsuitableBodyError
        return self._rewritten(copy.deepcopy(body))

    def _rewritten(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [made for statement in body for made in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        match statement:
            case ast.Expr(ast.Yield(value)):
                value = value or ast.Constant(None)
                yield assignment(f"{OWN}result", self.visit(value), statement)
                yield from parsed(self._emitting(value), statement)
            case ast.Expr(ast.YieldFrom(value)):
                yield from self._emission_of_each(self.visit(value), statement)
            case ast.Expr(ast.Call(ast.Attribute(owner, method)) as call) if self._is_inlined(call, WRITES):
                arguments = call.args
                name = owner.attr  # type: ignore[attr-defined]
                yield from self._write(name, method, [self.visit(each) for each in arguments], statement)
            case ast.Expr(ast.Call() as call) if self._defers_timers and self._sets_timer(call):
                self.may_use_timers = self.has_deferred_timers = True
                yield assignment(f"{OWN}argument0", self.visit(call.args[0]), statement)
                # A value that is no time must fail here, where the line and the element are known.
                is_int = f"{OWN}type({OWN}argument0) is {OWN}int"
                is_whole = f"{is_int} and {MIN_LONG_VALUE} <= {OWN}argument0 <= {MAX_LONG_VALUE}"
                time = f"{OWN}argument0 if {is_whole} else {OWN}time_of_timer({OWN}argument0)"
                yield from parsed(f"{OWN}add_time({time})\n{OWN}add_key({OWN}key)", statement)
            case ast.Return(ast.Tuple([]) | ast.List([])):
                yield ast.copy_location(ast.Continue(), statement)
            case ast.Return(value):
                if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                    yield from self._emission_of_results(self.visit(value), statement)
                yield ast.copy_location(ast.Continue(), statement)
            case ast.If() | ast.While():
                statement.test = self.visit(statement.test)
                statement.body = self._rewritten(statement.body)
                statement.orelse = self._rewritten(statement.orelse)
                yield statement
            case ast.For():
                statement.target, statement.iter = self.visit(statement.target), self.visit(statement.iter)
                statement.body = self._rewritten(statement.body)
                yield statement
            case _:
                yield self.visit(statement)

    def _is_inlined(self, call: ast.Call, methods: dict[type, dict[str, int]]) -> bool:
        """True for a call of a state's method that the loop can do itself."""
        state = self._state(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if state is None or call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
            return False
        return methods[state.kind].get(call.func.attr) == len(call.args)  # type: ignore[attr-defined]

    def _write(self, name: str, method: str, arguments: list[ast.expr], at: ast.AST) -> Iterator[ast.stmt]:
        # In the order of a call: the attribute, then the arguments, then the method.
        yield from parsed(f"{OWN}target = {OWN}self.{name}", at)
        for number, argument in enumerate(arguments):
            yield assignment(f"{OWN}argument{number}", argument, at)
        given = ", ".join(f"{OWN}argument{number}" for number in range(len(arguments)))
        inlined = "\n".join(self._writing(self._states[name], method, arguments))
        call = f"{OWN}target.{method}({given})"
        yield from parsed(f"if {OWN}target is {OWN}held_{name}:\n{indented(inlined)}\nelse:\n{indented(call)}", at)

    def _writing(self, state: InlinedState, method: str, arguments: list[ast.expr]) -> Iterator[str]:
        """Code for a write whose arguments are in variables."""
        if method == "clear":
            yield state.clearing()
            return
        entry = f"{state.entries_name}[{OWN}key]"
        if state.kind is DirectValueState:
            write = f"{state.noting(f'{OWN}key in {state.entries_name}')}\n{entry} = {OWN}argument0"
            if not isinstance(arguments[0], _NEVER_NONE):
                write = f"if {OWN}argument0 is None:\n{indented(state.clearing())}\nelse:\n{indented(write)}"
            yield write
            return
        first, further = f"[{OWN}argument0]", f"{OWN}found.append({OWN}argument0)"
        if state.kind is DirectMapState:
            first = f"{{{OWN}argument0: {OWN}argument1}}"
            further = f"{OWN}found[{OWN}argument0] = {OWN}argument1"
        begin, extend = f"{entry} = {first}\n{state.noting('False')}", f"{further}\n{state.noting('True')}"
        write = f"if {OWN}found is None:\n{indented(begin)}\nelse:\n{indented(extend)}"
        yield f"{OWN}found = {state.entries_name}.get({OWN}key)\n{write}"

    def _emission_of_each(self, values: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        yield assignment(f"{OWN}results", values, at)
        yield from parsed(f"for {OWN}result in {OWN}results:\n{indented(self._emitting(None))}", at)

    def _emission_of_results(self, results: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        emitting = f"for {OWN}result in {OWN}results:\n{indented(self._emitting(None))}"
        check = f"if {OWN}results is not None:\n    {OWN}check_results({OWN}results)\n{indented(emitting)}"
        yield assignment(f"{OWN}results", results, at)
        yield from parsed(check, at)

    def _emitting(self, value: ast.expr | None) -> str:
        """Code that emits `penstock_result`, the result of the expression `value` (None: of an unknown one).

        The expression shows which checks are unnecessary: whether the result is for a side output, and whether it must
        be copied.
        """
        result = f"{OWN}result"
        append = f"{OWN}append({result})"
        if self._with_timestamps:
            append += f"\n{OWN}append_time({OWN}timestamp)"
        timestamp = f"{OWN}timestamp" if self._with_timestamps else "None"
        copying = f"{result} = {OWN}copied({result})\n" if self._around.copied is not None else ""
        is_tagged = f"{OWN}isinstance({result}[0], {OWN}OutputTag)"
        side = f"{OWN}emit_side({result}[0].tag_id, {result}[1], {timestamp})"
        match value:
            case ast.Constant() | ast.JoinedStr() | ast.Compare():
                return append
            case ast.Tuple(parts) if not any(isinstance(part, ast.Starred) for part in parts):
                fixed = (ast.Constant, ast.JoinedStr)
                changeable = [at for at, part in enumerate(parts) if not isinstance(part, fixed)]
                kinds = [f"{OWN}type({result}[{at}]) not in {OWN}immutable" for at in changeable]
                if len(parts) == 2 and 0 in changeable:
                    special = f"if {is_tagged}:\n{indented(side)}\nelse:\n{indented(copying + append)}"
                    return f"if {' or '.join(kinds)}:\n{indented(special)}\nelse:\n{indented(append)}"
                copy_first = f"if {' or '.join(kinds)}:\n{indented(copying)}\n" if kinds and copying else ""
                return copy_first + append
        tagged = f"{OWN}isinstance({result}, {OWN}tuple) and {OWN}len({result}) == 2 and {is_tagged}"
        special = f"if {tagged}:\n{indented(side)}\nelse:\n{indented(copying + append)}"
        return f"if {OWN}type({result}) not in {OWN}immutable:\n{indented(special)}\nelse:\n{indented(append)}"

    # --- expressions -----------------------------------------------------------------------------------------------

    def _state(self, node: ast.AST) -> InlinedState | None:
        match node:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                return self._states.get(name)
        return None

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if (asked := self._broadcast.state(node)) is not None:
            return expression(asked, node)
        match node.func:
            case ast.Attribute(owner, "get" | "contains" as method) if (
                has_one_argument(node) and (rules := self._broadcast.dictionary(owner)) is not None
            ):
                return self._looked_up(method, self.visit(node.args[0]), rules, node)
            case ast.Attribute(ast.Attribute(_, name), method) if not self._comprehensions and self._is_inlined(
                node, READS
            ):
                return self._read(name, method, [self.visit(each) for each in node.args], node)
            case ast.Attribute(ast.Name(owner), "get_current_key") if owner == self._ctx and self._is_keyed(node):
                return expression(f"{OWN}key", node)
            case ast.Attribute(ast.Name(owner), "timestamp") if owner == self._ctx and not node.args:
                return expression(f"{OWN}timestamp" if self._with_timestamps else "None", node)
            case ast.Attribute(_, method) if self._sets_timer(node) or self._sets_timer(
                node, "delete_event_time_timer"
            ):
                self.may_use_timers = True
                call = expression(f"{OWN}event_timers.{_EVENT_TIMERS[method]}({OWN}key, {OWN}void)", node)
                assert isinstance(call, ast.Call)
                call.args.insert(0, self.visit(node.args[0]))
                return call
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.Call)
        return visited

    def _looked_up(self, method: str, key: ast.expr, entries: str, at: ast.AST) -> ast.expr:
        if method == "contains":
            return ast.copy_location(ast.Compare(key, [ast.In()], [expression(entries, at)]), at)
        call = expression(f"{entries}.get()", at)
        assert isinstance(call, ast.Call)
        call.args = [key]
        return call

    def _is_keyed(self, node: ast.Call) -> bool:
        return self._around.has_keys and not node.args and not node.keywords

    def _sets_timer(self, node: ast.Call, wanted: str = "register_event_time_timer") -> bool:
        """True for a call that sets (or deletes) an event-time timer of the current key."""
        match node.func:
            case ast.Attribute(ast.Call(ast.Attribute(ast.Name(owner), "timer_service"), [], []), method):
                is_wanted = owner == self._ctx and method == wanted and has_one_argument(node)
                return is_wanted and self._around.has_keys and self._around.event_timers is not None
        return False

    def _read(self, name: str, method: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        state = self._states[name]
        entries, given = state.entries_name, f"{OWN}given"
        if state.kind is DirectValueState:
            inlined, given = f"{entries}.get({OWN}key)", ""
        elif method == "contains":
            inlined = f"{given} in {entries}.get({OWN}key, {OWN}no_map)"
        else:  # The argument first, as for a call: it may write the state.
            found = f"{entries}.get({OWN}key, {OWN}no_map).get({OWN}wanted)"
            inlined = f"{found} if ({OWN}wanted := {given}) is {OWN}wanted else None"
        is_same = f"({OWN}state := {OWN}self.{name}) is {OWN}held_{name}"
        read = expression(f"(({inlined}) if {is_same} else {OWN}state.{method}({given}))", at)
        filled = _Filled(given, arguments[0]).visit(read) if arguments else read
        assert isinstance(filled, ast.expr)
        return filled

    def _in_comprehension(self, node: ast.expr) -> ast.AST:
        self._comprehensions += 1
        visited = self.generic_visit(node)
        self._comprehensions -= 1
        return visited

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _in_comprehension

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_harmless = isinstance(node.value, ast.Name) and node.value.id == self._ctx and node.attr in _WITHOUT_TIMERS
        before = self.may_use_timers
        visited = self.generic_visit(node)
        if is_harmless:
            self.may_use_timers = before
        return visited

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(ast.Name(name), ast.Constant(at), ast.Load()) if (
                name == self.value_name and self._items is not None and type(at) is int and 0 <= at < self._items
            ):
                return expression(f"{OWN}item{at}", node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name == self._self:
            return _renamed(node, f"{OWN}self")
        if name == self.value_name and self._items is not None:
            return expression(f"({' '.join(f'{OWN}item{at},' for at in range(self._items))})", node)
        if name == self.value_name:
            return _renamed(node, f"{_USERS}{name}" if self.value_is_set else RECORD)
        if name == self._ctx:
            self.may_use_timers = True
            return _renamed(node, f"{OWN}context")
        if name in self._local_names:
            return _renamed(node, f"{_USERS}{name}")
        if name in self._free_names:
            return expression(f"{OWN}cell_{name}.cell_contents", node)
        return node


class _Filled(ast.NodeTransformer):
    """Puts an expression in place of a name."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self._value) if node.id == self._name else node


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _renamed(node: ast.Name, name: str) -> ast.Name:
    return ast.copy_location(ast.Name(name, node.ctx), node)
