"""Writes random programs, as text, from a seed.

Every step of a program takes and gives elements of the same kind, so any step can be left out of a program that fails.
Functions come as lambdas, functions, closures, partials, bound methods and Function objects. They change elements, keep
them, change what they have kept, alias and hold state in every way that generated code must not mistake, write globals,
cells, attributes and properties, and note what they do.
"""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass, replace
from typing import TypeVar

from tests.random_programs import elements
from tests.random_programs.elements import KINDS, Kind, first_element

_HEAD = '''
import functools
from collections import deque
from dataclasses import dataclass, field

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from penstock.datastream import (
    AggregateFunction, FilterFunction, FlatMapFunction, KeyedCoProcessFunction, KeyedProcessFunction, MapFunction,
    ProcessWindowFunction, ReduceFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

EFFECTS = []
KEPT = []
TABLE = [3, 1, 4, 1]
LIMIT = 7


def note(*what):
    EFFECTS.append(repr(what))
    return True


def set_limit(number):
    global LIMIT
    LIMIT = number % 9
    return LIMIT


class Holder:
    def __init__(self, value=2):
        self.value = value

    @property
    def doubled(self):
        return self.value * 2

    @doubled.setter
    def doubled(self, value):
        self.value = value % 50

    def bump(self, by=1):
        self.value = (self.value + by) % 50
        return self.value


HOLDER = Holder()


class Memory:
    """Gives the first thing that it was given, again and again."""

    def __init__(self):
        self.last = None

    def get(self, made):
        self.last = made if self.last is None else self.last
        return self.last

    @property
    def first(self):
        return self.last


MEMORY = Memory()
MEMO = {}


class Box:
    """Holds a state, or anything else."""

    def __init__(self, inside):
        self.inside = inside

    def add(self, number):
        self.inside.update((self.inside.value() or 0) + number)
        return self.inside.value()


def add_to(state, number):
    state.update((state.value() or 0) + number)
    return number


class Times(TimestampAssigner):
    def extract_timestamp(self, v, record_timestamp):
        return abs({number}) % 60


class Punctuated(WatermarkGenerator):
    """A watermark after each element."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 5)

    def on_periodic_emit(self, output):
        pass
'''

_BUILD = """
def timed(s):
    strategy = {strategy}
    return s.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Times()))


def build(env):
    s = env.from_collection([{elements}])
{steps}
    return s
"""


@dataclass(frozen=True)
class Step:
    """A part of a program that takes and gives a stream."""

    definitions: str
    call: str
    """An expression; `s` is the stream."""
    combines: bool = False
    """True for windows that may reduce before the exchange: how often their functions are called is not fixed."""


@dataclass(frozen=True)
class Program:
    seed: int
    kind: Kind
    elements: tuple[str, ...]
    steps: tuple[Step, ...]
    has_watermarks: bool = False
    """True if timers and windows fire between elements, not only at the end."""

    @property
    def text(self) -> str:
        head = _HEAD.replace("{number}", self.kind.number_of("v"))
        definitions = "\n\n".join(step.definitions for step in self.steps if step.definitions)
        calls = "\n".join(f"    s = {step.call}" for step in self.steps)
        only_at_end = "WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))"
        strategy = "WatermarkStrategy.for_generator(Punctuated)" if self.has_watermarks else only_at_end
        build = _BUILD.replace("{elements}", ", ".join(self.elements)).replace("{steps}", calls)
        build = build.replace("{strategy}", strategy)
        return "\n\n".join([head, elements.PRELUDE, definitions, build])

    @property
    def combines(self) -> bool:
        return any(step.combines for step in self.steps)

    def without(self, at: int) -> Program:
        return replace(self, steps=self.steps[:at] + self.steps[at + 1 :])


def program_of(seed: int) -> Program:
    return _Writer(seed).program()


_OPENING = [
    "self.count = runtime_context.get_state(ValueStateDescriptor('count', Types.PICKLED_BYTE_ARRAY()))",
    "self.other = runtime_context.get_state(ValueStateDescriptor('other', Types.PICKLED_BYTE_ARRAY()))",
    "self.many = runtime_context.get_list_state(ListStateDescriptor('many', Types.PICKLED_BYTE_ARRAY()))",
    "self.seen = runtime_context.get_map_state(MapStateDescriptor('seen', Types.LONG(), Types.LONG()))",
    "self.later = None",
    "self.timers = None",
]
_HOLDERS = {
    "self.box": "self.box = Box(self.count)",
    "self.adding": "self.adding = functools.partial(add_to, self.count)",
    "self.states": "self.states = deque([self.count])",
}
"""What a process function holds only if it uses it: one way to the state must not show another one."""
_STATEMENTS = ("note", "limit", "holder", "table", "keep", "augment", "unset")
_STATE_FORMS = 27
_T = TypeVar("_T")


class _Writer:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._kind = self._random.choice(KINDS)
        self._may_fail = self._random.random() < 0.15
        self._is_odd = self._random.random() < 0.2
        """True if functions have statements that no loop can contain."""
        # Few different forms in one program: then what they do to each other is seen, and most functions are inlined.
        self._forms = self._some(_STATEMENTS, 0.4)
        self._state_forms = self._some(tuple(range(_STATE_FORMS)), 0.3)
        self._count = 0

    def _some(self, choices: tuple[_T, ...], share: float) -> list[_T]:
        return [each for each in choices if self._random.random() < share] or [self._random.choice(choices)]

    def program(self) -> Program:
        numbers = [self._random.randrange(-40, 90) for _ in range(self._random.randrange(3, 25))]
        first = tuple(first_element(self._kind, self._random.randrange(4), number) for number in numbers)
        writers = [self._map, self._map, self._filter, self._flat_map, self._flat_map, self._process, self._process]
        writers += [self._connected, self._reduce, self._window]
        steps = tuple(self._random.choice(writers)() for _ in range(self._random.randrange(1, 5)))
        return Program(self._seed, self._kind, first, steps, self._random.random() < 0.4)

    # --- expressions -----------------------------------------------------------------------------------------------

    def _one_of(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _constant(self) -> str:
        return str(self._random.randrange(1, 9))

    def _number(self, names: tuple[str, ...], depth: int = 2) -> str:
        """An expression for a number; `names` are expressions that may be part of it."""
        if depth == 0 or self._random.random() < 0.25:
            return self._random.choice([*names, *names, self._constant()])
        one, other = self._number(names, depth - 1), self._number(names, depth - 1)
        constant = self._constant()
        forms = [
            f"({one} + {other})", f"({one} - {other})", f"({one} * {constant})", f"({one} % {constant})",
            f"({one} // {constant})", f"(-{one})", f"min({one}, {other})", f"abs({one})",
            f"({one} if {self._condition(names, depth - 1)} else {other})", f"(TABLE[{one} % 4] + {other})",
            f"({one} + LIMIT)", f"({one} + HOLDER.value)", f"({one} + HOLDER.doubled)",
            f"sum([i + {one} for i in range(3)])", f"len([i for i in TABLE if i < {one}])",
        ]  # fmt: skip
        if self._may_fail:
            forms += [f"({one} // ({other} - {constant}))"] * 4
        return self._random.choice(forms)

    def _condition(self, names: tuple[str, ...], depth: int = 1) -> str:
        one, other = self._number(names, depth), self._number(names, depth)
        return self._one_of(
            f"{one} > {other}", f"{one} % 2 == 0", f"{one} != {other}", f"({one} < {other} or {one} > 30)",
            f"not {one} % 3", f"{other} in TABLE", f"({one} > 1 and note('asked', {one}))",
        )  # fmt: skip

    def _element(self, v: str, names: tuple[str, ...]) -> str:
        """An expression for an element."""
        if self._random.random() < 0.25:
            return v
        key = self._one_of(self._kind.key_of(v), f"({self._number(names, 1)}) % 4")
        return self._kind.made(v, key, f"({self._number(names)}) % 97")

    def _names(self, v: str, *more: str) -> tuple[str, ...]:
        return (self._kind.number_of(v), f"({self._kind.key_of(v)})", *more)

    def _simple(self, v: str, *more: str) -> str:
        """An element as one expression, perhaps with a side effect first."""
        made = self._element(v, self._names(v, *more))
        if (
            self._kind.changes and self._random.random() < 0.2
        ):  # Something that is kept, and that others must not change.
            number = self._kind.number_of(v)
            return self._one_of(
                f"MEMORY.get({made})", f"MEMO.setdefault({number} % 3, {made})", f"(MEMORY.first or {made})"
            )
        return self._one_of(made, made, f"note('made', {self._kind.number_of(v)}) and {made}")

    # --- statements ------------------------------------------------------------------------------------------------

    def _statements(self, v: str, names: tuple[str, ...], depth: int = 2, state: bool = False) -> list[str]:
        return [line for _ in range(self._random.randrange(1, 4)) for line in self._statement(v, names, depth, state)]

    def _statement(self, v: str, names: tuple[str, ...], depth: int, state: bool) -> list[str]:
        number = self._number(names, 1)
        forms = ["assign", *self._forms]
        forms += ["unbound", "global"] if self._is_odd else []
        forms += ["change", "alias"] if self._kind.changes else []
        forms += ["if", "for", "while", *(["try"] if self._is_odd else [])] if depth else []
        forms += ["state"] * 8 if state else []
        match self._random.choice(forms):
            case "assign":
                return [f"x = {self._number((*names, 'x'))} % 97"]
            case "augment":
                return [f"x += {number} % 31"]
            case "note":
                return [f"note({self._constant()}, x, {number})"]
            case "global":
                return [f"LIMIT = ({number}) % 9"]
            case "limit":
                return [f"set_limit({number})"]
            case "unset":
                return [f"if {self._condition(names)}:", f"    z = {number} % 97", "else:", "    z = 1", "x += z"]
            case "holder":
                return [self._one_of(f"HOLDER.value = {number} % 50", f"HOLDER.doubled = {number}", "HOLDER.bump(x)")]
            case "table":
                return [f"TABLE[x % 4] = {number} % 97"]
            case "keep":
                kept = self._change("KEPT[0]", "5") if self._kind.changes else "note('kept', KEPT[0])"
                return [f"KEPT.append({v})", "if len(KEPT) > 2:", f"    {kept}", "    KEPT.pop()"]
            case "unbound":
                return [
                    "try:", "    x = (x + y) % 97", "except UnboundLocalError:", "    note('unbound')",
                    f"if {self._condition(names)}:", f"    y = {number} % 97",
                ]  # fmt: skip
            case "change":
                return [self._change(v, f"{number} % 97")]
            case "alias":
                return [f"w = {v}", self._change("w", f"{number} % 97")]
            case "if":
                lines = [f"if {self._condition((*names, 'x'))}:", *_indented(self._statements(v, names, 0, state))]
                if self._random.random() < 0.5:
                    lines += ["else:", *_indented(self._statements(v, names, 0, state))]
                return lines
            case "for":
                inner = self._statements(v, (*names, "i"), 0, state)
                return [f"for i in range({number} % 4):", *_indented(inner)]
            case "while":
                return ["while x > 50:", f"    x -= {self._random.randrange(7, 40)}", "    note('down', x)"]
            case "try":
                lines = ["try:", f"    x = {number} // (x % 3)", "except ZeroDivisionError:", "    x = 1"]
                return lines if self._random.random() < 0.5 else [*lines, "finally:", "    note('finally', x)"]
            case _:
                return self._state_statement(names)

    def _change(self, v: str, number: str) -> str:
        return self._random.choice(self._kind.changes).format(v=v, x=number)

    def _state_statement(self, names: tuple[str, ...]) -> list[str]:
        number = self._number((*names, "x"), 1)
        choices = [
            [f"self.count.update((self.count.value() or 0) + {number} % 31)"],
            [f"self.count.update({number} % 31)"],
            ["x = self.count.value() or 0"],
            [f"if {self._condition(names)}:", "    self.count.clear()"],
            [f"self.many.add({number} % 31)"],
            ["x = sum(self.many.get()) % 97"],
            [f"self.seen.put({number} % 5, x)"],
            [f"x = self.seen.get({number} % 5) or 0"],
            [f"if self.seen.contains({number} % 5):", f"    self.seen.remove({number} % 5)"],
            [f"self.box.add({number} % 31)"],
            [f"self.adding({number} % 31)"],
            [f"self.total += {number} % 31"],
            [f"self.total = {number} % 31"],
            ["held = self.count", f"held.update({number} % 31)"],
            ["if not hasattr(self, 'late'):", "    self.late = self.count", f"self.late.update({number} % 31)"],
            ["if self.later is None:", "    self.later = Box(self.count)", f"x = self.later.add({number} % 31) % 97"],
            [f"self.states[0].update({number} % 31)"],
            [f"self.states['count' == 'count' and -1].update({number} % 31)"],
            ["self.count, self.other = self.other, self.count"],
            [f"self.bump({number} % 31)"],
            ["x = ctx.get_current_key() if isinstance(ctx.get_current_key(), int) else 0"],
            [f"ctx.timer_service().register_event_time_timer(abs({number}) % 80)"],
            ["timers = ctx.timer_service()", f"timers.register_event_time_timer(abs({number}) % 80)"],
            ["if self.timers is None:", "    self.timers = ctx.timer_service()",
             f"self.timers.register_event_time_timer(abs({number}) % 80)"],
            [f"ctx.timer_service().delete_event_time_timer(abs({number}) % 80)"],
            ["for each in (self.count, self.other):", f"    each.update({number} % 31)"],
            [f"getattr(self, 'count').update({number} % 31)"],
        ]  # fmt: skip
        assert len(choices) == _STATE_FORMS
        return choices[self._random.choice(self._state_forms)]

    def _body(self, v: str, *more: str, state: bool = False, start: str = "x = 0") -> list[str]:
        names = self._names(v, *more)
        lines = [start, *self._statements(v, (*names, "x"), 2, state)]
        return ["global LIMIT", *lines] if any("LIMIT = " in line for line in lines) else lines

    def _results(self, v: str, *more: str) -> list[str]:
        """Statements that yield some elements."""
        names = self._names(v, *more, "x")
        made = self._element(v, names)
        forms = [
            [f"yield {made}"],
            [f"yield {made}", f"yield {self._element(v, names)}"],
            [f"yield {made}", f"yield {v}", f"yield {self._element(v, names)}"],
            ["for i in range(2):", f"    yield {self._element(v, (*names, 'i'))}"],
            [f"if {self._condition(names)}:", f"    yield {made}"],
            [f"if {self._condition(names)}:", "    return", f"yield {made}"],
            [f"yield from [{made}, {self._element(v, names)}]"],
            [f"yield {made}", *self._statement(v, names, 0, False), f"yield {self._element(v, names)}"],
        ]
        if self._kind.changes:
            forms += [[f"r = {made}", "yield r", self._change("r", "x % 97"), "yield r"]]
        return self._random.choice(forms)

    # --- steps -----------------------------------------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _map(self) -> Step:
        return self._of_function("map", "MapFunction", lambda v, *more: [f"return {self._simple(v, *more)}"])

    def _filter(self) -> Step:
        def ends(v: str, *more: str) -> list[str]:
            return [f"return {self._condition(self._names(v, *more))}"]

        return self._of_function("filter", "FilterFunction", ends)

    def _flat_map(self) -> Step:
        def ends(v: str, *more: str) -> list[str]:
            if self._random.random() < 0.15:
                return [f"return [{self._simple(v, *more)}, {self._simple(v, *more)}]"]
            return self._results(v, *more)

        return self._of_function("flat_map", "FlatMapFunction", ends)

    def _of_function(self, method: str, base: str, ends: object) -> Step:
        """A step with a function of one element, in one of the forms in which people write functions."""
        assert callable(ends)
        name = self._name("f")
        forms = ["def", "def", "body", "body", "class", "class", "closure", "partial", "bound"]
        match self._random.choice([*forms, *(["lambda", "lambda"] if method != "flat_map" else [])]):
            case "lambda":
                [end] = ends("v")
                return Step("", f"s.{method}(lambda v: {end.removeprefix('return ')})")
            case "def":
                lines = ["x = 1", *ends("v")] if method == "flat_map" else ends("v")
                return Step(_function(name, "v", lines), f"s.{method}({name})")
            case "body":
                return Step(_function(name, "v", [*self._body("v"), *ends("v", "x")]), f"s.{method}({name})")
            case "closure":
                move = _function("move", "", ["nonlocal offset", "offset = (offset + 1) % 9", "return offset"])
                changes = self._random.choice([["move()"], ["x = move()"], [], ["note('offset', offset)"]])
                inner = [*self._body("v", "offset"), *changes, *ends("v", "offset", "x")]
                if self._random.random() < 0.3:
                    inner = ends("v", "offset", "move()") if method != "flat_map" else inner
                lines = ["offset = 3", *move.splitlines(), *_function("inner", "v", inner).splitlines(), "return inner"]
                return Step(_function(name, "", lines), f"s.{method}({name}())")
            case "partial":
                lines = [*self._body("v", "given"), *ends("v", "given", "x")]
                return Step(_function(name, "given, v", lines), f"s.{method}(functools.partial({name}, 4))")
            case "bound":
                lines = [*self._body("v", "self.value"), *ends("v", "self.value", "self.doubled", "x")]
                text = f"class {name}(Holder):\n" + textwrap.indent(_function("run", "self, v", lines), "    ")
                return Step(text, f"s.{method}({name}().run)")
        opening = ["self.seen = 0", "self.later = None", "self.kept = []", "self.holder = Holder()"]
        extra = self._random.choice([
            ["self.seen = (self.seen + 1) % 9"],
            ["if self.later is None:", "    self.later = Holder(5)", "x = self.later.bump(2)"],
            ["self.holder.doubled = x + self.seen"],
            ["me = self", "me.seen = (self.seen + 2) % 9"],
            ["self.kept.append(v)", "if len(self.kept) > 1:", "    note('kept', self.kept.pop(0))"],
            ["if not hasattr(self, 'late'):", "    self.late = 0", "self.late += 1", "x = self.late"],
        ])  # fmt: skip
        lines = [*self._body("v", "self.seen"), *extra, *ends("v", "self.seen", "self.holder.value", "x")]
        methods = [_function("open", "self, runtime_context", opening), _function(method, "self, v", lines)]
        return Step(_class(name, base, methods), f"s.{method}({name}())")

    def _key(self) -> str:
        key, number = self._kind.key_of("v"), self._kind.number_of("v")
        selector = self._one_of(key, key, f"({key}) % 2", f"str({key})", f"({key}, {number} % 2)", f"({number}) / 4")
        types = {"/": ", Types.LONG()", "str(": ", Types.STRING()"}
        declared = next((text for sign, text in types.items() if sign in selector), "")
        return f"lambda v: {selector}{self._one_of(declared, '')}"

    def _process(self) -> Step:
        name = self._name("P")
        keyed = f"timed(s).key_by({self._key()})"
        bodies = {"process_element": self._process_body()}
        return Step(self._with_state(name, "KeyedProcessFunction", bodies), f"{keyed}.process({name}())")

    def _connected(self) -> Step:
        name, key = self._name("C"), self._key()
        second = f"timed(s.filter(lambda v: {self._condition(self._names('v'), 0)})).key_by({key})"
        bodies = {"process_element1": self._process_body(), "process_element2": self._process_body()}
        call = f"timed(s).key_by({key}).connect({second}).process({name}())"
        return Step(self._with_state(name, "KeyedCoProcessFunction", bodies), call)

    def _process_body(self) -> list[str]:
        if self._random.random() < 0.2:
            return [*self._body("v", state=True), "return [v]"]
        reading = self._random.choice([(), (), ("(self.count.value() or 0)",), ("self.total",)])
        return [*self._body("v", state=True), *self._results("v", *reading)]

    def _with_state(self, name: str, base: str, bodies: dict[str, list[str]]) -> str:
        """A process function with state and timers; `bodies` are those of its methods for elements."""
        fired = self._fired()
        used = "\n".join([line for body in bodies.values() for line in body] + fired)
        total = "@property\n" + _function("total", "self", ["return self.count.value() or 0"])
        total += "\n\n@total.setter\n" + _function("total", "self, value", ["self.count.update(value)"])
        bump = _function("bump", "self, number", ["self.count.update((self.count.value() or 0) + number)"])
        opening = [*_OPENING, *(line for attribute, line in _HOLDERS.items() if attribute in used)]
        methods = [_function("open", "self, runtime_context", opening), total, bump]
        methods += [_function(method, "self, v, ctx", body) for method, body in bodies.items()]
        return _class(name, base, [*methods, _function("on_timer", "self, timestamp, ctx", fired)])

    def _fired(self) -> list[str]:
        late = ["if self.timers is None:", "    self.timers = ctx.timer_service()"]
        forms = [
            [],
            ["self.count.update((self.count.value() or 0) + 1)"],
            ["self.box.add(3)"],
            ["if timestamp < 60:", "    ctx.timer_service().register_event_time_timer(timestamp + 7)"],
            ["self.later = Box(self.other)"],
            ["self.count, self.other = self.other, self.count"],
            [*late, "self.timers.delete_event_time_timer(timestamp + 3)"],
        ]
        return [
            "note('timer', timestamp, ctx.get_current_key(), self.count.value(), list(self.many.get()))",
            *self._random.choice(forms),
            f"yield {self._made_of_numbers('timestamp % 4', '(self.count.value() or 0) % 97')}",
        ]

    def _made_of_numbers(self, k: str, n: str) -> str:
        return (
            first_element(self._kind, 0, 1).replace("0", k, 1).replace("1", n, 1) if self._kind.name != "number" else n
        )

    def _merged(self, a: str, b: str) -> list[str]:
        """Statements that reduce two elements to one."""
        one, other = self._kind.number_of(a), self._kind.number_of(b)
        made = self._kind.made(
            a, self._kind.key_of(a), f"({self._one_of(f'{one} + {other}', f'max({one}, {other})')}) % 97"
        )
        if self._kind.changes and self._random.random() < 0.4:
            return [self._change(a, f"({one} + {other}) % 97"), f"return {a}"]
        return self._random.choice([
            [f"return {made}"], [f"return {a} if {one} > {other} else {b}"],
            [f"note('reduce', {other})", f"return {made}"],
        ])  # fmt: skip

    def _reduce(self) -> Step:
        name, lines = self._name("r"), self._merged("a", "b")
        keyed = f"s.key_by({self._key()})"
        if len(lines) == 1 and self._random.random() < 0.5:
            return Step("", f"{keyed}.reduce(lambda a, b: {lines[0].removeprefix('return ')})")
        return Step(_function(name, "a, b", lines), f"{keyed}.reduce({name})")

    def _window(self) -> Step:
        assigner = self._one_of(
            "TumblingEventTimeWindows.of(Time.milliseconds(20))",
            "EventTimeSessionWindows.with_gap(Time.milliseconds(4))",
            "SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))",
        )
        windowed = f"timed(s).key_by({self._key()}).window({assigner})"
        name = self._name("w")
        match self._one_of("reduce", "aggregate", "process"):
            case "reduce":
                return Step(
                    _function(name, "a, b", self._merged("a", "b")), f"{windowed}.reduce({name})", combines=True
                )
            case "aggregate":
                added = self._one_of(f"acc[1] + {self._kind.number_of('v')}", self._kind.number_of("v"))
                result = self._made_of_numbers("acc[0] % 4", "acc[1] % 97")
                methods = [
                    _function("create_accumulator", "self", ["return (0, 0)"]),
                    _function("add", "self, v, acc", [f"return (acc[0] + 1, {added})"]),
                    _function("get_result", "self, acc", [f"return {result}"]),
                    _function("merge", "self, a, b", ["return (a[0] + b[0], a[1] + b[1])"]),
                ]  # fmt: skip
                return Step(
                    _class(name, "AggregateFunction", methods), f"{windowed}.aggregate({name}())", combines=True
                )
        lines = [
            "x = len(list(elements))",
            "for v in elements:",
            *_indented(self._statements("v", self._names("v"), 0)),
        ]
        lines += ["    yield v"]
        if any("LIMIT = " in line for line in lines):
            lines[:0] = ["global LIMIT"]
        process = _function("process", "self, key, context, elements", lines)
        return Step(_class(name, "ProcessWindowFunction", [process]), f"{windowed}.process({name}())")


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _function(name: str, parameters: str, lines: list[str]) -> str:
    return f"def {name}({parameters}):\n" + "\n".join(_indented(lines)) + "\n"


def _class(name: str, base: str, methods: list[str]) -> str:
    return f"class {name}({base}):\n" + "\n".join(textwrap.indent(each, "    ") for each in methods)
