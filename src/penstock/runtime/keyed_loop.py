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
import datetime
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from operator import length_hint
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeGuard

from penstock.common.exceptions import StateAccessError
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import MapStateDescriptor
from penstock.runtime.element_copies import IMMUTABLE_TYPES
from penstock.runtime.inlining import ONE_AT_A_TIME, source_of
from penstock.runtime.loop_bodies import UnsuitableBodyError, check_body, is_generator
from penstock.runtime.state.direct_views import DirectListState, DirectMapState, DirectValueState
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns
    from penstock.runtime.timers import KeyTimerQueue

RECORD = "penstock_record"
"""The local variable of a generated loop that holds the element; failures are reported with it."""

_OWN = "penstock_"
_USERS = "users_"
_INERT = (
    int, float, complex, bool, str, bytes, bytearray, tuple, list, dict, set, frozenset, range, type(None), deque,
    Counter, OrderedDict, defaultdict, Decimal, re.Pattern, datetime.date, datetime.datetime, datetime.timedelta,
)  # fmt: skip
"""Types of attributes whose methods cannot know the function's state."""
_READS: dict[type, dict[str, int]] = {
    DirectValueState: {"value": 0},
    DirectListState: {},
    DirectMapState: {"get": 1, "contains": 1},
}
_WRITES: dict[type, dict[str, int]] = {
    DirectValueState: {"update": 1, "clear": 0},
    DirectListState: {"add": 1, "clear": 0},
    DirectMapState: {"put": 2, "clear": 0},
}
"""What can be done in the loop itself, with the number of arguments."""
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
    """False if the body for sure neither looks at time nor sets or deletes timers."""
    _deferred_timers: KeyTimerQueue | None
    """The queue that gets the timers which the loop has gathered; None if it sets them itself."""
    _items: tuple[int, ...] | None
    """The columns that the loop goes over, if it is made for elements in columns."""

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
        self._run(append, append_time, keys, values, timestamps)

    def run_columns(
        self,
        keys: list[Any],
        columns: Columns,
        append: Callable[[Any], None],
        append_time: Callable[[int | None], None],
    ) -> None:
        """The same for a loop that goes over columns."""
        assert self._items is not None
        key_of_each = iter(keys)
        # What is the key, too, is there already.
        lists = [keys if at == columns.key else columns.arrays[at].tolist() for at in self._items]
        timestamps = () if columns.timestamps is None else columns.timestamps.tolist()
        try:
            self._run(append, append_time, key_of_each, timestamps, *lists)
        except Exception:
            at = len(keys) - 1 - length_hint(key_of_each)
            value = columns.taken(slice(at, at + 1)).batch().values[0]  # noqa: F841  # Failures are reported with it.
            raise

    def _run(self, *arguments: Any) -> None:
        opened: list[Any] = []
        for table in self._tables:
            opened += (table.open_namespace(VOID_NAMESPACE), table.open_changes(VOID_NAMESPACE))
        times: list[int] = []
        keys: list[Any] = []
        gathering = () if self._deferred_timers is None else (times.append, keys.append)
        try:
            self._loop(*arguments, *self._arguments, *gathering, *opened)
        finally:
            if self._deferred_timers is not None and keys:
                self._deferred_timers.add_all(times, keys)
            for table in self._tables:
                table.close_namespace(VOID_NAMESPACE)


def keyed_loop(
    method: Callable[..., Any], around: Surroundings, with_timestamps: bool, items: int | None = None
) -> KeyedLoop | None:
    """The loop for a bound method `(self, value, ctx)` of an opened function; None if the method must be called.

    :param items: For elements in columns: how many items the tuples have. None is also given if they are wanted whole.
    """
    if not isinstance(method, MethodType) or not isinstance(method.__func__, FunctionType):
        return None
    node = source_of(method.__func__, parameters=3)
    if not isinstance(node, ast.FunctionDef) or not hasattr(method.__self__, "__dict__"):
        return None
    try:
        with ONE_AT_A_TIME:
            return _LoopMaker(method.__self__, method.__func__, node, around, with_timestamps, items).make()
    except (UnsuitableBodyError, SystemError):  # The latter if the program itself parses Python in another thread.
        return None


# --- which states are inlined ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _InlinedState:
    kind: type
    table: StateTable
    number: int
    """Sets the names of its table apart from those of others."""

    @property
    def entries_name(self) -> str:
        return f"{_OWN}entries{self.number}"

    @property
    def changes_name(self) -> str:
        return f"{_OWN}changed{self.number}"

    def noting(self, was_there: str) -> str:
        """Notes that the entry is written, as `penstock.runtime.state.changes` has it."""
        if not self.table.tracks_changes:
            return "pass"
        return f"if {_OWN}key not in {self.changes_name}:\n    {self.changes_name}[{_OWN}key] = {was_there}"

    def clearing(self) -> str:
        pop = f"{self.entries_name}.pop({_OWN}key, {_OWN}absent)"
        if not self.table.tracks_changes:
            return pop
        return (
            f"if {pop} is not {_OWN}absent:\n"
            f"    if {self.changes_name}.get({_OWN}key, True):\n        {self.changes_name}[{_OWN}key] = True\n"
            f"    else:\n        del {self.changes_name}[{_OWN}key]"
        )


class _Uses:
    """What a body does with the attributes of its function."""

    def __init__(self, body: list[ast.stmt], self_name: str, ctx_name: str, function: Any) -> None:
        self._self = self_name
        self._ctx = ctx_name
        self._attributes: dict[str, Any] = function.__dict__
        self._kind = type(function)
        self.is_opaque = False
        """True if something is called that may use any state."""
        self.known: dict[str, bool] = {}
        """Attributes that are states, and whether all their uses can be inlined."""
        statements = {id(each.value) for root in body for each in ast.walk(root) if isinstance(each, ast.Expr)}
        nodes = [node for root in body for node in ast.walk(root)]
        called: set[int] = set()
        for node in nodes:
            if isinstance(node, ast.Call):
                called |= self._note_call(node, is_statement=id(node) in statements)
        owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            name = self.attribute(node)
            if name is not None and id(node) not in called:
                self._note_other_use(name, node)
            if isinstance(node, ast.Name) and node.id == self_name and id(node) not in owners:
                self.is_opaque = True  # The function hands itself to somebody.

    def attribute(self, node: ast.AST) -> str | None:
        """The name in `self.name`."""
        match node:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                return name
        return None

    def _note_call(self, call: ast.Call, is_statement: bool) -> set[int]:
        """The attribute nodes that are accounted for."""
        if self.attribute(call.func) is not None:
            self.is_opaque = True  # A method of the function's own.
            return {id(call.func)}
        if not isinstance(call.func, ast.Attribute):
            return set()
        if _asks_for_broadcast_state(call, self._ctx) and (asked := self.attribute(call.args[0])) is not None:
            return {id(call.args[0])} if isinstance(self._held(asked), MapStateDescriptor) else set()
        name = self.attribute(call.func.value)
        if name is None:
            return set()
        held = self._held(name)
        methods = {**_READS.get(type(held), {}), **(_WRITES.get(type(held), {}) if is_statement else {})}
        if type(held) in _READS:
            fits = methods.get(call.func.attr) == len(call.args) and not call.keywords
            starred = any(isinstance(argument, ast.Starred) for argument in call.args)
            self.known[name] = self.known.get(name, True) and fits and not starred
        elif not _is_inert(held):
            self.is_opaque = True
        return {id(call.func.value)}

    def _note_other_use(self, name: str, node: ast.AST) -> None:
        held = self._held(name)
        if type(held) in _READS:
            self.known[name] = False
        elif not isinstance(getattr(node, "ctx", None), ast.Store) and not _is_inert(held):
            self.is_opaque = True  # It may be handed to somebody who calls it.

    def _held(self, name: str) -> Any:
        """What the attribute is now; a method or a property is found in the class."""
        return self._attributes.get(name, getattr(self._kind, name, None))


def _asks_for_broadcast_state(node: ast.AST, ctx_name: str) -> TypeGuard[ast.Call]:
    """True for `ctx.get_broadcast_state(...)`."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), "get_broadcast_state"), [argument], []):
            return owner == ctx_name and not isinstance(argument, ast.Starred)
    return False


def _is_inert(held: Any, depth: int = 3) -> bool:
    """True if nothing that can be called through an attribute's value knows the function's state."""
    if type(held) not in _INERT:
        return False
    items = held.values() if isinstance(held, dict) else held
    is_container = not isinstance(held, (str, bytes, bytearray, range)) and hasattr(held, "__iter__")
    return not is_container or (depth > 0 and all(_is_inert(item, depth - 1) for item in items))


def _inlined_states(uses: _Uses, attributes: dict[str, Any], around: Surroundings) -> dict[str, _InlinedState]:
    if uses.is_opaque or not around.has_keys:
        return {}
    tables = {name: attributes[name].table_in_loops(around.backend) for name in uses.known}
    # A state that is not inlined does not see what is done to its table in the loop.
    elsewhere = {id(attributes[name].table) for name, fits in uses.known.items() if not fits or tables[name] is None}
    numbers: dict[int, int] = {}
    inlined = {}
    for name, table in sorted(tables.items()):
        if table is not None and id(table) not in elsewhere:
            number = numbers.setdefault(id(table), len(numbers))
            inlined[name] = _InlinedState(type(attributes[name]), table, number)
    return inlined


# --- making the loop -------------------------------------------------------------------------------------------------


class _LoopMaker:
    def __init__(
        self,
        function: Any,
        method: FunctionType,
        node: ast.FunctionDef,
        around: Surroundings,
        with_timestamps: bool,
        items: int | None,
    ) -> None:
        self._function = function
        self._method = method
        self._node = node
        self._around = around
        self._with_timestamps = with_timestamps
        self._items = items

    def make(self) -> KeyedLoop:
        code = self._method.__code__
        parameters = code.co_varnames[:3]
        local_names = {*code.co_varnames[3:], *code.co_cellvars}.difference(parameters)
        names = {node.id for node in ast.walk(self._node) if isinstance(node, ast.Name)}
        if any(name.startswith((_OWN, _USERS)) for name in names):
            raise UnsuitableBodyError
        body = self._node.body[1:] if ast.get_docstring(self._node) is not None else self._node.body
        check_body(body, local_names, is_generator(self._node))
        uses = _Uses(body, parameters[0], parameters[2], self._function)
        states = _inlined_states(uses, self._function.__dict__, self._around)
        broadcast = _BroadcastLookups(parameters, self._function, self._method, self._around)
        rewriting = _Rewriting(
            parameters,
            local_names,
            code.co_freevars,
            states,
            broadcast,
            self._around,
            self._with_timestamps,
            self._items,
            not uses.is_opaque and _only_sets_timers(body, parameters[2]),
        )
        statements = rewriting.block(body)
        if self._items is not None and (rewriting.value_is_set or _is_wanted_whole(body, parameters[1])):
            raise UnsuitableBodyError
        marks = _Marks(uses.is_opaque, len(states) < len(uses.known), self._with_timestamps)
        statements = marks.put_into(statements, frozenset())
        if rewriting.value_is_set:
            statements[:0] = ast.parse(f"{_USERS}{rewriting.value_name} = {RECORD}").body
        may_use_timers = uses.is_opaque or rewriting.may_use_timers
        return self._assembled(statements, states, broadcast, may_use_timers, rewriting.has_deferred_timers)

    def _assembled(
        self,
        body: list[ast.stmt],
        states: dict[str, _InlinedState],
        broadcast: _BroadcastLookups,
        may_use_timers: bool,
        has_deferred_timers: bool,
    ) -> KeyedLoop:
        tables = {state.number: state for state in states.values()}
        fixed = self._fixed_names(body, broadcast.names)
        used = _names_in(body)
        items = None if self._items is None else [at for at in range(self._items) if f"{_OWN}item{at}" in used]
        columns = [RECORD] if items is None else [f"{_OWN}item{at}" for at in items]
        over = [f"{_OWN}values"] if items is None else [f"{_OWN}items{at}" for at in items]
        arguments = [f"{_OWN}{name}" for name in ("append", "append_time", "keys")]
        arguments += [*over, f"{_OWN}timestamps"] if items is None else [f"{_OWN}timestamps", *over]
        arguments += fixed
        arguments += [f"{_OWN}add_time", f"{_OWN}add_key"] if has_deferred_timers else []
        for _, state in sorted(tables.items()):
            arguments += [state.entries_name, state.changes_name]
        timestamp = [f"{_OWN}timestamp"] if self._with_timestamps else []
        element = ", ".join([f"{_OWN}key", *columns, *timestamp]) + ","
        zipped = ", ".join([f"{_OWN}keys", *over, *(f"{each}s" for each in timestamp)])
        name = self._node.name
        loop = f"    for {element} in {_OWN}zip({zipped}):\n        pass"
        module = ast.parse(f"def {name}({', '.join(arguments)}):\n{loop}")
        made = module.body[0]
        assert isinstance(made, ast.FunctionDef) and isinstance(made.body[0], ast.For)
        made.body[0].body = body or [ast.Pass()]
        text = ast.unparse(ast.fix_missing_locations(module))
        _locate(module, self._node)
        scope: dict[str, Any] = {}
        exec(compile(module, self._method.__code__.co_filename, "exec", dont_inherit=True), self._globals(), scope)
        attributes = self._function.__dict__
        return KeyedLoop(
            text=text,
            _loop=scope[name],
            _arguments=tuple(fixed.values()),
            _tables=tuple(state.table for _, state in sorted(tables.items())),
            _function=self._function,
            _inlined=tuple((name, attributes[name]) for name in states),
            may_use_timers=may_use_timers,
            _deferred_timers=self._around.event_timers if has_deferred_timers else None,
            _items=None if items is None else tuple(items),
        )

    def _globals(self) -> dict[str, Any]:
        return self._method.__globals__

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
            "type": type,
            "tuple": tuple,
            "len": len,
            "isinstance": isinstance,
            **{f"cell_{variable}": cell for variable, cell in cells},
            **further,
        }
        used = _names_in(body)
        return {
            f"{_OWN}{name}": value
            for name, value in {"zip": zip, **there}.items()
            if name == "zip" or f"{_OWN}{name}" in used
        }


def _names_in(body: list[ast.stmt]) -> set[str]:
    return {node.id for root in body for node in ast.walk(root) if isinstance(node, ast.Name)}


class _BroadcastLookups:
    """The broadcast states that a body asks its context for, by descriptors that are attributes or globals.

    A descriptor may be another one when the loop gets there: that is asked each time.
    """

    def __init__(self, parameters: tuple[str, ...], function: Any, method: FunctionType, around: Surroundings) -> None:
        self._self, _, self._ctx = parameters
        self._attributes: dict[str, Any] = function.__dict__
        self._globals = method.__globals__
        self._local_names = {*method.__code__.co_varnames, *method.__code__.co_cellvars, *method.__code__.co_freevars}
        self._state_of = getattr(around.context, "get_broadcast_state", None)
        self.names: dict[str, Any] = {"holder": function, "state_of": self._state_of}
        """What the loop knows states, their dictionaries and their descriptors by."""
        self._numbers: dict[str, int] = {}
        """By the expression for the descriptor."""

    def state(self, node: ast.AST) -> str | None:
        """The state that an expression asks for; None if it must ask for it."""
        found = self._found(node)
        return None if found is None else self._unless_changed("broadcast", *found)

    def dictionary(self, node: ast.AST) -> str | None:
        """Its dictionary, for `get` and `in`."""
        found = self._found(node)
        return None if found is None else self._unless_changed("rules", *found)

    def _unless_changed(self, what: str, text: str, number: int) -> str:
        is_same = f"{text} is {_OWN}descriptor{number}"
        return f"({_OWN}{what}{number} if {is_same} else {_OWN}state_of({text}))"

    def _found(self, node: ast.AST) -> tuple[str, int] | None:
        """The expression for the descriptor in the loop, and its number."""
        if self._state_of is None or not _asks_for_broadcast_state(node, self._ctx):
            return None
        match node.args[0]:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                text, descriptor = f"{_OWN}holder.{name}", self._attributes.get(name)
            case ast.Name(name) if name not in self._local_names:
                text, descriptor = name, self._globals.get(name)
            case _:
                return None
        if text not in self._numbers:
            if not isinstance(descriptor, MapStateDescriptor):
                return None
            try:
                state = self._state_of(descriptor)
            except StateAccessError:  # It happens again for the first element, and is told.
                return None
            number = self._numbers[text] = len(self._numbers)
            self.names |= {
                f"descriptor{number}": descriptor,
                f"broadcast{number}": state,
                f"rules{number}": state.dictionary,
            }
        return text, self._numbers[text]


def _is_wanted_whole(body: list[ast.stmt], value_name: str) -> bool:
    """True if an element's tuple is needed for every element, or more than once for one."""
    parents = {id(child): node for root in body for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in (node for root in body for node in ast.walk(root)):
        if not isinstance(node, ast.Name) or node.id != value_name:
            continue
        match parents.get(id(node)):
            case ast.Subscript(value=owner, slice=ast.Constant(), ctx=ast.Load()) if owner is node:
                continue
            case ast.Assign([ast.Tuple()]):
                continue  # It is taken apart at once.
        around = list(_ancestors(node, parents))
        if any(isinstance(each, (*_LOOPS, *_COMPREHENSIONS)) for each in around):
            return True
        if not any(isinstance(each, ast.If) for each in around):
            return True
    return False


_LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _ancestors(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while (above := parents.get(id(node))) is not None:
        yield above
        node = above


def _only_sets_timers(body: list[ast.stmt], ctx_name: str) -> bool:
    """True if the body cannot delete a timer or look at those that there are: then they can be set later."""
    parents = {id(child): node for root in body for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in (node for root in body for node in ast.walk(root)):
        if isinstance(node, ast.Name) and node.id == ctx_name:
            owner = parents.get(id(node))
            if not isinstance(owner, ast.Attribute):
                return False
            if owner.attr == "timer_service":
                match parents.get(id(parents.get(id(owner)))):
                    case ast.Attribute(_, "register_event_time_timer" | "current_watermark"):
                        continue
                return False
    return True


class _Marks:
    """Sets the current key and the context's timestamp in front of what may ask for them: nowhere else does it cost."""

    def __init__(self, is_opaque: bool, has_called_states: bool, with_timestamps: bool) -> None:
        self._needs_of_self: frozenset[str] = frozenset()
        if is_opaque:
            self._needs_of_self = frozenset({"key", "timestamp"})
        elif has_called_states:
            self._needs_of_self = frozenset({"key"})
        timestamp = f"{_OWN}timestamp" if with_timestamps else "None"
        self._lines = {
            "key": f"{_OWN}backend.current_key = {_OWN}key",
            "timestamp": f"{_OWN}context.element_timestamp = {timestamp}",
        }

    def put_into(self, statements: list[ast.stmt], known: frozenset[str]) -> list[ast.stmt]:
        """`known`: what is set already on every way that leads here."""
        made: list[ast.stmt] = []
        for statement in statements:
            missing = self._needs(statement) - known
            for need in sorted(missing):
                made += _made(self._lines[need], statement)
            known |= missing
            for block in ("body", "orelse"):
                if inner := getattr(statement, block, None):
                    setattr(statement, block, self.put_into(inner, known))
            made.append(statement)
        return made

    def _needs(self, statement: ast.stmt) -> frozenset[str]:
        """What the statement itself asks for, without those inside of it."""
        inner = {id(each) for block in ("body", "orelse") for each in getattr(statement, block, ())}
        own = [each for each in ast.iter_child_nodes(statement) if id(each) not in inner]
        names = {node.id for root in own for node in ast.walk(root) if isinstance(node, ast.Name)}
        needs = self._needs_of_self if f"{_OWN}self" in names else frozenset()
        return needs | {"key", "timestamp"} if f"{_OWN}context" in names else needs


def _locate(module: ast.Module, at: ast.AST) -> None:
    """Give every node that was added the place of the function, so that all lines are the user's."""
    for node in ast.walk(module):
        if "lineno" in node._attributes and getattr(node, "lineno", None) is None:
            ast.copy_location(node, at)


class _Rewriting(ast.NodeTransformer):
    """Turns the statements of a body into those of the loop."""

    def __init__(
        self,
        parameters: tuple[str, ...],
        local_names: set[str],
        free_names: Iterable[str],
        states: dict[str, _InlinedState],
        broadcast: _BroadcastLookups,
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
        if self._self in stored or self._ctx in stored:
            raise UnsuitableBodyError
        return [made for statement in body for made in self._statement(copy.deepcopy(statement))]

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        match statement:
            case ast.Expr(ast.Yield(value)):
                yield from self._emission(value or ast.Constant(None), statement)
            case ast.Expr(ast.YieldFrom(value)):
                yield from self._emission_of_each(self.visit(value), statement)
            case ast.Expr(ast.Call(ast.Attribute(owner, method), arguments)) if self._writes(owner, method):
                state = self._states[owner.attr]  # type: ignore[attr-defined]
                yield from self._write(state, method, [self.visit(each) for each in arguments], statement)
            case ast.Expr(ast.Call() as call) if self._defers_timers and self._sets_timer(call):
                self.may_use_timers = self.has_deferred_timers = True
                yield _assigned(f"{_OWN}argument0", self.visit(call.args[0]), statement)
                yield from _made(f"{_OWN}add_time({_OWN}argument0)\n{_OWN}add_key({_OWN}key)", statement)
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
        return state is not None and method in _WRITES[state.kind]

    def _write(self, state: _InlinedState, method: str, arguments: list[ast.expr], at: ast.AST) -> Iterator[ast.stmt]:
        if method == "clear":
            yield from _made(state.clearing(), at)
            return
        for number, argument in enumerate(arguments):
            # First of all, as for a call: they may read the state.
            yield _assigned(f"{_OWN}argument{number}", argument, at)
        entry = f"{state.entries_name}[{_OWN}key]"
        if state.kind is DirectValueState:
            write = f"{state.noting(f'{_OWN}key in {state.entries_name}')}\n{entry} = {_OWN}argument0"
            if not isinstance(arguments[0], _NEVER_NONE):
                write = f"if {_OWN}argument0 is None:\n{_indented(state.clearing())}\nelse:\n{_indented(write)}"
            yield from _made(write, at)
            return
        first, further = f"[{_OWN}argument0]", f"{_OWN}found.append({_OWN}argument0)"
        if state.kind is DirectMapState:
            first = f"{{{_OWN}argument0: {_OWN}argument1}}"
            further = f"{_OWN}found[{_OWN}argument0] = {_OWN}argument1"
        begin, go_on = f"{entry} = {first}\n{state.noting('False')}", f"{further}\n{state.noting('True')}"
        is_first = f"if {_OWN}found is None:\n{_indented(begin)}\nelse:\n{_indented(go_on)}"
        yield from _made(f"{_OWN}found = {state.entries_name}.get({_OWN}key)\n{is_first}", at)

    def _emission(self, value: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        yield _assigned(f"{_OWN}result", self.visit(value), at)
        yield from _made(self._emitting(value), at)

    def _emission_of_each(self, values: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        text = f"for {_OWN}result in {_OWN}results:\n{_indented(self._emitting(None))}"
        yield _assigned(f"{_OWN}results", values, at)
        yield from _made(text, at)

    def _emission_of_results(self, results: ast.expr, at: ast.AST) -> Iterator[ast.stmt]:
        emitting = f"for {_OWN}result in {_OWN}results:\n{_indented(self._emitting(None))}"
        check = f"if {_OWN}results is not None:\n    {_OWN}check_results({_OWN}results)\n{_indented(emitting)}"
        yield _assigned(f"{_OWN}results", results, at)
        yield from _made(check, at)

    def _emitting(self, value: ast.expr | None) -> str:
        """Emit `penstock_result`, which `value` gave."""
        result = f"{_OWN}result"
        append = f"{_OWN}append({result})"
        if self._with_timestamps:
            append += f"\n{_OWN}append_time({_OWN}timestamp)"
        timestamp = f"{_OWN}timestamp" if self._with_timestamps else "None"
        copying = f"{result} = {_OWN}copied({result})\n" if self._around.copied is not None else ""
        is_tagged = f"{_OWN}isinstance({result}[0], {_OWN}OutputTag)"
        side = f"{_OWN}emit_side({result}[0].tag_id, {result}[1], {timestamp})"
        match value:
            case ast.Constant() | ast.JoinedStr() | ast.Compare():
                return append
            case ast.Tuple(parts) if not any(isinstance(part, ast.Starred) for part in parts):
                fixed = (ast.Constant, ast.JoinedStr)
                changeable = [at for at, part in enumerate(parts) if not isinstance(part, fixed)]
                kinds = [f"{_OWN}type({result}[{at}]) not in {_OWN}immutable" for at in changeable]
                if len(parts) == 2 and 0 in changeable:
                    special = f"if {is_tagged}:\n{_indented(side)}\nelse:\n{_indented(copying + append)}"
                    return f"if {' or '.join(kinds)}:\n{_indented(special)}\nelse:\n{_indented(append)}"
                copy_first = f"if {' or '.join(kinds)}:\n{_indented(copying)}\n" if kinds and copying else ""
                return copy_first + append
        tagged = f"{_OWN}isinstance({result}, {_OWN}tuple) and {_OWN}len({result}) == 2 and {is_tagged}"
        special = f"if {tagged}:\n{_indented(side)}\nelse:\n{_indented(copying + append)}"
        return f"if {_OWN}type({result}) not in {_OWN}immutable:\n{_indented(special)}\nelse:\n{_indented(append)}"

    # --- expressions -----------------------------------------------------------------------------------------------

    def _state(self, node: ast.AST) -> _InlinedState | None:
        match node:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                return self._states.get(name)
        return None

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if (asked := self._broadcast.state(node)) is not None:
            return _expression(asked, node)
        match node.func:
            case ast.Attribute(owner, "get" | "contains" as method) if (
                _has_one_argument(node) and (rules := self._broadcast.dictionary(owner)) is not None
            ):
                return self._looked_up(method, self.visit(node.args[0]), rules, node)
            case ast.Attribute(owner, method) if (state := self._state(owner)) is not None:
                return self._read(state, method, [self.visit(each) for each in node.args], node)
            case ast.Attribute(ast.Name(owner), "get_current_key") if owner == self._ctx and self._is_keyed(node):
                return _expression(f"{_OWN}key", node)
            case ast.Attribute(ast.Name(owner), "timestamp") if owner == self._ctx and not node.args:
                return _expression(f"{_OWN}timestamp" if self._with_timestamps else "None", node)
            case ast.Attribute(_, method) if self._sets_timer(node) or self._sets_timer(
                node, "delete_event_time_timer"
            ):
                self.may_use_timers = True
                made = _expression(f"{_OWN}event_timers.{_EVENT_TIMERS[method]}({_OWN}key, {_OWN}void)", node)
                assert isinstance(made, ast.Call)
                made.args.insert(0, self.visit(node.args[0]))
                return made
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.Call)
        return visited

    def _looked_up(self, method: str, key: ast.expr, entries: str, at: ast.AST) -> ast.expr:
        if method == "contains":
            return ast.copy_location(ast.Compare(key, [ast.In()], [_expression(entries, at)]), at)
        made = _expression(f"{entries}.get()", at)
        assert isinstance(made, ast.Call)
        made.args = [key]
        return made

    def _is_keyed(self, node: ast.Call) -> bool:
        return self._around.has_keys and not node.args and not node.keywords

    def _sets_timer(self, node: ast.Call, wanted: str = "register_event_time_timer") -> bool:
        """True for a call that sets (or deletes) an event-time timer of the current key."""
        match node.func:
            case ast.Attribute(ast.Call(ast.Attribute(ast.Name(owner), "timer_service"), [], []), method):
                is_meant = owner == self._ctx and method == wanted and _has_one_argument(node)
                return is_meant and self._around.has_keys and self._around.event_timers is not None
        return False

    def _read(self, state: _InlinedState, method: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        if state.kind is DirectValueState:
            return _expression(f"{state.entries_name}.get({_OWN}key)", at)
        found = f"{state.entries_name}.get({_OWN}key, {_OWN}no_map)"
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
                return _expression(f"{_OWN}item{at}", node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name == self._self:
            return _renamed(node, f"{_OWN}self")
        if name == self.value_name and self._items is not None:
            return _expression(f"({' '.join(f'{_OWN}item{at},' for at in range(self._items))})", node)
        if name == self.value_name:
            return _renamed(node, f"{_USERS}{name}" if self.value_is_set else RECORD)
        if name == self._ctx:
            self.may_use_timers = True
            return _renamed(node, f"{_OWN}context")
        if name in self._local_names:
            return _renamed(node, f"{_USERS}{name}")
        if name in self._free_names:
            return _expression(f"{_OWN}cell_{name}.cell_contents", node)
        return node


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _has_one_argument(node: ast.Call) -> bool:
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


def _renamed(node: ast.Name, name: str) -> ast.Name:
    return ast.copy_location(ast.Name(name, node.ctx), node)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _made(text: str, at: ast.AST) -> list[ast.stmt]:
    """Statements of our own, in the place of one of the user's."""
    statements = ast.parse(text).body
    for node in (node for root in statements for node in ast.walk(root)):
        if "lineno" in node._attributes:
            ast.copy_location(node, at)
    return statements


def _expression(text: str, at: ast.AST) -> ast.expr:
    made = ast.parse(text, mode="eval").body
    for node in ast.walk(made):
        if "lineno" in node._attributes:
            ast.copy_location(node, at)
    return made


def _assigned(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), at)], value), at)
