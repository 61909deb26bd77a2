"""Does the work of a process function in one generated loop over a batch, with its state in local variables.

    def process_element(self, value, ctx):                 for key, value in zip(keys, values):
        count = (self.count.value() or 0) + 1                  count = (entries.get(key) or 0) + 1
        self.count.update(count)                               entries[key] = count
        yield value[0], count                                  append((value[0], count))

For a function that does little, most of the time goes into calls: of the function itself, of its generator, and one for
every touch of state. Here the body stands in the loop (`loop_bodies` says when it may), and value, list and map state
are operations on the dictionaries of their tables. The loop is made from the function's syntax tree and keeps its line
numbers and the name of its file, so a failure shows the user's own lines.

Elements that are tuples and come in columns need not be put together: `value[0]` is a variable of the loop then.

A state is inlined if the body reads and writes it in known ways only, and calls nothing that may use it behind the
loop's back: a method of the function itself, or of an object that it holds.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from penstock.datastream.output_tag import OutputTag
from penstock.runtime.element_copies import IMMUTABLE_TYPES
from penstock.runtime.inlining import ONE_AT_A_TIME, source_of
from penstock.runtime.loop_bodies import UnsuitableBodyError, check_body, is_generator
from penstock.runtime.loop_broadcast import BroadcastLookups
from penstock.runtime.loop_columns import InColumns, LoopColumns, Position, columns_for
from penstock.runtime.loop_placement import LateColumns, Marks, is_wanted_whole, only_sets_timers
from penstock.runtime.loop_states import WRITES, InlinedState, StateUses, inlined_states
from penstock.runtime.loop_syntax import OWN, assigned, expression, has_one_argument, indented, made, names_in
from penstock.runtime.reachable_state import reaches_state
from penstock.runtime.state.direct_views import DirectMapState, DirectValueState
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable
from penstock.runtime.timers import time_of_timer

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns
    from penstock.runtime.timers import KeyTimerQueue

RECORD = "penstock_record"
"""The local variable of a generated loop that holds the element; failures are reported with it."""

_USERS = "users_"
_EVENT_TIMERS = {"register_event_time_timer": "add", "delete_event_time_timer": "remove"}
_WITHOUT_TIMERS = {"output", "time_domain", "get_broadcast_state"}
"""What a context offers that has nothing to do with timers."""
_NEVER_NONE = (ast.BinOp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.Compare, ast.ListComp)


@dataclass(frozen=True)
class Surroundings:
    """What a body refers to besides its element."""

    backend: KeyedStateBackend
    context: Any
    """The context that is handed to the function."""
    has_keys: bool
    """True if the elements have keys; False for a broadcast input, too, whose function has keyed state."""
    event_timers: KeyTimerQueue | None
    """The queue of its event-time timers; None if it cannot have any."""
    emit_side: Callable[[str, Any, int | None], None]
    check_results: Callable[[Any], None]
    """Raises for what a function returned that cannot be iterated over."""
    copied: Callable[[Any], Any] | None
    """Makes a copy of what the function emits; None if it need not be copied."""


@dataclass(frozen=True)
class KeyedLoop:
    """Does for a batch what calling the function for each of its elements does."""

    text: str
    """The loop as Python source."""
    _loop: Callable[..., None]
    _arguments: tuple[Any, ...]
    _tables: tuple[StateTable, ...]
    _function: Any
    _inlined: tuple[tuple[str, Any], ...]
    """Attributes of the function, and the states that they were when the loop was made."""
    may_use_timers: bool
    """False if the body certainly neither looks at time nor sets or deletes timers."""
    _deferred_timers: KeyTimerQueue | None
    """The queue that gets the timers which the loop has gathered; None if it sets them itself."""
    _columns: LoopColumns | None
    """What the loop goes over, if it is made for elements in columns."""
    _variants: dict[tuple[bool, ...], Callable[..., None]]
    """The loop, by the tables for which it notes what it writes."""
    _make_variant: Callable[[tuple[bool, ...]], Callable[..., None]]

    def fits(self) -> bool:
        """False if the function has put something else into the place of a state that is inlined."""
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

    def run_columns(
        self, columns: Columns, append: Callable[[Any], None], append_time: Callable[[int | None], None]
    ) -> int:
        """The same for a loop that goes over columns; how many times it had to look into one for a single item."""
        assert self._columns is not None
        lists, late = self._columns.taken_from(columns)
        position = Position(lists[0])
        try:
            self._run(self._columns.keys_among(lists), append, append_time, position, position.first, *lists[1:], *late)
        except Exception:
            at = position.now()
            if at >= 0:  # Otherwise it was not for an element: state could not be read.
                value = columns.taken(slice(at, at + 1)).batch().values[0]  # noqa: F841  # Failures are reported with it.
            raise
        return position.times_asked

    def _run(self, keys_of_batch: Iterable[Any], *arguments: Any) -> None:
        noted = tuple([table.wants_notes(VOID_NAMESPACE) for table in self._tables])
        loop = self._variants.get(noted) or self._variant(noted)
        opened: list[Any] = []
        for table in self._tables:
            opened += (table.open_namespace(VOID_NAMESPACE, keys_of_batch), table.open_changes(VOID_NAMESPACE))
        times: list[int] = []
        keys: list[Any] = []
        gathering = () if self._deferred_timers is None else (times.append, keys.append)
        try:
            loop(*arguments, *self._arguments, *gathering, *opened)
        finally:
            if self._deferred_timers is not None and keys:
                self._deferred_timers.add_all(times, keys)
            for table in self._tables:
                table.close_namespace(VOID_NAMESPACE)

    def _variant(self, noted: tuple[bool, ...]) -> Callable[..., None]:
        try:
            with ONE_AT_A_TIME:
                loop = self._make_variant(noted)
        except SystemError:  # As below; to note more than is wanted does no harm.
            loop = self._loop
        self._variants[noted] = loop
        return loop


def keyed_loop(
    method: Callable[..., Any], around: Surroundings, with_timestamps: bool, in_columns: InColumns | None = None
) -> KeyedLoop | None:
    """The loop for a bound method `(self, value, ctx)` of an opened function; None if the method must be called.

    With `in_columns`, None also if the elements must be put together.
    """
    if not isinstance(method, MethodType) or not isinstance(method.__func__, FunctionType):
        return None
    node = source_of(method.__func__, parameters=3)
    if not isinstance(node, ast.FunctionDef) or not hasattr(method.__self__, "__dict__"):
        return None
    try:
        with ONE_AT_A_TIME:
            return _LoopMaker(method.__self__, method.__func__, node, around, with_timestamps, in_columns).make()
    except (UnsuitableBodyError, SystemError):  # The latter if the program itself parses Python in another thread.
        return None


# --- making the loop -------------------------------------------------------------------------------------------------


class _LoopMaker:
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
        names = {node.id for node in ast.walk(self._node) if isinstance(node, ast.Name)}
        if any(name.startswith((OWN, _USERS)) for name in names) or reaches_state(self._method):
            raise UnsuitableBodyError
        body = self._node.body[1:] if ast.get_docstring(self._node) is not None else self._node.body
        check_body(body, local_names, is_generator(self._node))
        uses = StateUses(body, parameters[0], parameters[2], self._function)
        around = self._around
        states = inlined_states(uses, self._function.__dict__, around.backend) if around.has_keys else {}
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
            not uses.is_opaque and only_sets_timers(body, parameters[2]),
        )
        statements = rewriting.block(body)
        if self._in_columns is not None and (rewriting.value_is_set or is_wanted_whole(body, parameters[1])):
            raise UnsuitableBodyError
        marks = Marks(uses.is_opaque, len(states) < len(uses.known), self._with_timestamps)
        statements = marks.put_into(statements)
        if rewriting.value_is_set:
            statements[:0] = ast.parse(f"{_USERS}{rewriting.value_name} = {RECORD}").body
        columns = None if self._in_columns is None else columns_for(statements, self._in_columns)
        if columns is not None:
            statements = LateColumns(columns.late).put_into(statements)
        may_use_timers = uses.is_opaque or rewriting.may_use_timers
        return self._assembled(statements, states, broadcast, columns, may_use_timers, rewriting.has_deferred_timers)

    def _assembled(
        self,
        body: list[ast.stmt],
        states: dict[str, InlinedState],
        broadcast: BroadcastLookups,
        columns: LoopColumns | None,
        may_use_timers: bool,
        has_deferred_timers: bool,
    ) -> KeyedLoop:
        tables = {state.number: state for state in states.values()}
        fixed = self._fixed_names(body, broadcast.names)
        if columns is None:
            over = ["keys", "values", "timestamps"]
            element = [f"{OWN}key", RECORD, f"{OWN}timestamp"][: 3 if self._with_timestamps else 2]
            zipped, further = over[: len(element)], over
        else:
            element = [f"{OWN}{name}" for name in columns.in_lists]
            zipped = [f"list_{name}" for name in columns.in_lists]
            further = ["position", *zipped, *(f"column_{name}" for name in columns.late)]
        arguments = [*(f"{OWN}{name}" for name in ("append", "append_time", *further)), *fixed]
        arguments += [f"{OWN}add_time", f"{OWN}add_key"] if has_deferred_timers else []
        for _, state in sorted(tables.items()):
            arguments += [state.entries_name, state.changes_name]
        name = self._node.name
        zip_them = f"{OWN}zip({', '.join(f'{OWN}{each}' for each in zipped)})"
        loop = f"    for {', '.join(element)}, in {zip_them}:\n        pass"
        module = ast.parse(f"def {name}({', '.join(arguments)}):\n{loop}")
        made = module.body[0]
        assert isinstance(made, ast.FunctionDef) and isinstance(made.body[0], ast.For)
        made.body[0].body = body or [ast.Pass()]
        text = ast.unparse(ast.fix_missing_locations(module))
        _locate(module, self._node)
        attributes = self._function.__dict__
        by_number = [state for _, state in sorted(tables.items())]

        def variant(noted: tuple[bool, ...]) -> Callable[..., None]:
            left_out = {each.changes_name for each, is_noted in zip(by_number, noted, strict=True) if not is_noted}
            return self._compiled(_WithoutNotes(left_out).visit(copy.deepcopy(module)))

        compiled = self._compiled(module)
        return KeyedLoop(
            text=text,
            _loop=compiled,
            _variants={tuple(each.table.tracks_changes for each in by_number): compiled},
            _make_variant=variant,
            _arguments=tuple(fixed.values()),
            _tables=tuple(state.table for state in by_number),
            _function=self._function,
            _inlined=tuple((name, attributes[name]) for name in states),
            may_use_timers=may_use_timers,
            _deferred_timers=self._around.event_timers if has_deferred_timers else None,
            _columns=columns,
        )

    def _compiled(self, module: ast.Module) -> Callable[..., None]:
        scope: dict[str, Any] = {}
        code = compile(module, self._method.__code__.co_filename, "exec", dont_inherit=True)
        exec(code, self._method.__globals__, scope)
        loop: Callable[..., None] = scope[self._node.name]
        return loop

    def _fixed_names(self, body: list[ast.stmt], further: dict[str, Any]) -> dict[str, Any]:
        """What the loop refers to, as far as it is the same for all batches."""
        around = self._around
        cells = zip(self._method.__code__.co_freevars, self._method.__closure__ or (), strict=True)
        there = {
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
            for name, value in {"zip": zip, **there}.items()
            if name == "zip" or f"{OWN}{name}" in used
        }


def _locate(module: ast.Module, at: ast.AST) -> None:
    """Give every node that was added the place of the function, so that all lines are the user's."""
    for node in ast.walk(module):
        if "lineno" in node._attributes and getattr(node, "lineno", None) is None:
            ast.copy_location(node, at)


class _WithoutNotes(ast.NodeTransformer):
    """Leaves out the statements that `InlinedState.noting` gives, for some tables."""

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
        self._defers_timers = defers_timers
        self.may_use_timers = False
        self.has_deferred_timers = False
        """True if the loop gathers timers, to be set when it is through."""
        self.value_is_set = False
        """True if the body gives the parameter for the element another value."""

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        stored = {node.id for root in body for node in ast.walk(root) if _is_stored(node)}  # type: ignore[attr-defined]
        self.value_is_set = self.value_is_set or self.value_name in stored
        # A comprehension may have a variable of the same name as one of an enclosing function.
        if self._self in stored or self._ctx in stored or not self._free_names.isdisjoint(stored):
            raise UnsuitableBodyError
        return [made for statement in body for made in self._statement(copy.deepcopy(statement))]

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        match statement:
            case ast.Expr(ast.Yield(value)):
                value = value or ast.Constant(None)
                yield assigned(f"{OWN}result", self.visit(value), statement)
                yield from made(self._emitting(value), statement)
            case ast.Expr(ast.YieldFrom(value)):
                yield from self._emission_of_each(self.visit(value), statement)
            case ast.Expr(ast.Call(ast.Attribute(owner, method), arguments)) if self._writes(owner, method):
                state = self._states[owner.attr]  # type: ignore[attr-defined]
                yield from self._write(state, method, [self.visit(each) for each in arguments], statement)
            case ast.Expr(ast.Call() as call) if self._defers_timers and self._sets_timer(call):
                self.may_use_timers = self.has_deferred_timers = True
                yield assigned(f"{OWN}argument0", self.visit(call.args[0]), statement)
                # What is no time must fail here, where the line and the element are known.
                is_whole = f"{OWN}type({OWN}argument0) is {OWN}int"
                time = f"{OWN}argument0 if {is_whole} else {OWN}time_of_timer({OWN}argument0)"
                yield from made(f"{OWN}add_time({time})\n{OWN}add_key({OWN}key)", statement)
            case ast.Return(ast.Tuple([]) | ast.List([])):
                yield ast.copy_location(ast.Continue(), statement)
            case ast.Return(value):
                if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                    yield from self._emission_of_results(self.visit(value), statement)
                yield ast.copy_location(ast.Continue(), statement)
            case ast.If() | ast.While():
                statement.test = self.visit(statement.test)
                statement.body = [made for each in statement.body for made in self._statement(each)]
                statement.orelse = [made for each in statement.orelse for made in self._statement(each)]
                yield statement
            case ast.For():
                statement.target, statement.iter = self.visit(statement.target), self.visit(statement.iter)
                statement.body = [made for each in statement.body for made in self._statement(each)]
                yield statement
            case _:
                yield self.visit(statement)

    def _writes(self, owner: ast.AST, method: str) -> bool:
        state = self._state(owner)
        return state is not None and method in WRITES[state.kind]

    def _write(self, state: InlinedState, method: str, arguments: list[ast.expr], at: ast.AST) -> Iterator[ast.stmt]:
        if method == "clear":
            yield from made(state.clearing(), at)
            return
        for number, argument in enumerate(arguments):
            # First of all, as for a call: they may read the state.
            yield assigned(f"{OWN}argument{number}", argument, at)
        entry = f"{state.entries_name}[{OWN}key]"
        if state.kind is DirectValueState:
            write = f"{state.noting(f'{OWN}key in {state.entries_name}')}\n{entry} = {OWN}argument0"
            if not isinstance(arguments[0], _NEVER_NONE):
                write = f"if {OWN}argument0 is None:\n{indented(state.clearing())}\nelse:\n{indented(write)}"
            yield from made(write, at)
            return
        first, further = f"[{OWN}argument0]", f"{OWN}found.append({OWN}argument0)"
        if state.kind is DirectMapState:
            first = f"{{{OWN}argument0: {OWN}argument1}}"
            further = f"{OWN}found[{OWN}argument0] = {OWN}argument1"
        begin, go_on = f"{entry} = {first}\n{state.noting('False')}", f"{further}\n{state.noting('True')}"
        is_first = f"if {OWN}found is None:\n{indented(begin)}\nelse:\n{indented(go_on)}"
        yield from made(f"{OWN}found = {state.entries_name}.get({OWN}key)\n{is_first}", at)

    def _emission_of_each(self, values: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        text = f"for {OWN}result in {OWN}results:\n{indented(self._emitting(None))}"
        yield assigned(f"{OWN}results", values, at)
        yield from made(text, at)

    def _emission_of_results(self, results: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        emitting = f"for {OWN}result in {OWN}results:\n{indented(self._emitting(None))}"
        check = f"if {OWN}results is not None:\n    {OWN}check_results({OWN}results)\n{indented(emitting)}"
        yield assigned(f"{OWN}results", results, at)
        yield from made(check, at)

    def _emitting(self, value: ast.expr | None) -> str:
        """Emit `penstock_result`, which `value` gave."""
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
            case ast.Attribute(owner, method) if (state := self._state(owner)) is not None:
                return self._read(state, method, [self.visit(each) for each in node.args], node)
            case ast.Attribute(ast.Name(owner), "get_current_key") if owner == self._ctx and self._is_keyed(node):
                return expression(f"{OWN}key", node)
            case ast.Attribute(ast.Name(owner), "timestamp") if owner == self._ctx and not node.args:
                return expression(f"{OWN}timestamp" if self._with_timestamps else "None", node)
            case ast.Attribute(_, method) if self._sets_timer(node) or self._sets_timer(
                node, "delete_event_time_timer"
            ):
                self.may_use_timers = True
                made = expression(f"{OWN}event_timers.{_EVENT_TIMERS[method]}({OWN}key, {OWN}void)", node)
                assert isinstance(made, ast.Call)
                made.args.insert(0, self.visit(node.args[0]))
                return made
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.Call)
        return visited

    def _looked_up(self, method: str, key: ast.expr, entries: str, at: ast.AST) -> ast.expr:
        if method == "contains":
            return ast.copy_location(ast.Compare(key, [ast.In()], [expression(entries, at)]), at)
        made = expression(f"{entries}.get()", at)
        assert isinstance(made, ast.Call)
        made.args = [key]
        return made

    def _is_keyed(self, node: ast.Call) -> bool:
        return self._around.has_keys and not node.args and not node.keywords

    def _sets_timer(self, node: ast.Call, wanted: str = "register_event_time_timer") -> bool:
        """True for a call that sets (or deletes) an event-time timer of the current key."""
        match node.func:
            case ast.Attribute(ast.Call(ast.Attribute(ast.Name(owner), "timer_service"), [], []), method):
                is_meant = owner == self._ctx and method == wanted and has_one_argument(node)
                return is_meant and self._around.has_keys and self._around.event_timers is not None
        return False

    def _read(self, state: InlinedState, method: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        if state.kind is DirectValueState:
            return expression(f"{state.entries_name}.get({OWN}key)", at)
        found = f"{state.entries_name}.get({OWN}key, {OWN}no_map)"
        return self._looked_up(method, arguments[0], found, at)

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


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _renamed(node: ast.Name, name: str) -> ast.Name:
    return ast.copy_location(ast.Name(name, node.ctx), node)
