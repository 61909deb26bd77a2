"""Functions that work on columns give what they give element by element, and fail as they do there."""

from __future__ import annotations

import itertools
import linecache
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.common.exceptions import JobExecutionError
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors import NumberSequenceSource
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription
from penstock.runtime import outputs
from penstock.runtime.column_functions import ColumnChain, column_chain, column_function
from penstock.runtime.columns import columns_of

LIMIT = 7
NAME = "seven"
PLACES = (3, -1, 4, 1, -5)
WORDS = ("a", "", "bc")
CHANGING = [2, 7, 1]
_numbers = itertools.count()


def function_of(expression: str, keyword: str = "return"):
    """A function whose source is available."""
    return function_with(f"{keyword} {expression}")


def function_with(*statements: str):
    filename = f"<function {next(_numbers)}>"
    text = "def made(v):\n" + "".join(f"    {line}\n" for statement in statements for line in statement.split("\n"))
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict = {"LIMIT": LIMIT, "NAME": NAME, "PLACES": PLACES, "WORDS": WORDS, "CHANGING": CHANGING}
    scope |= {"doubled": doubled, "clamped": clamped, "endless": endless}
    exec(compile(text, filename, "exec"), scope)
    return scope["made"]


def doubled(number):
    return number + number


def clamped(number, least):
    """Not below `least`, nor above the limit."""
    if number < least:
        return least
    larger = number > LIMIT
    return LIMIT if larger else number


def endless(number):
    return 0 if number < 0 else 1 + endless(number - 1)


def on_batches(function):
    """Gives what the function gives on the columns of a batch; None if that is left to the loop."""
    chain = column_chain([(MapDescription, function)])

    def run(values: list) -> list | None:
        found, done = chain.run(columns_of(values), 1)
        return found.batch().values if done else None

    return run


def exactly(value):
    """With its type, and the sign of zero; any NaN is like any other."""
    if isinstance(value, tuple):
        return type(value), [exactly(item) for item in value]
    return type(value), struct.pack("d", value) if type(value) is float and value == value else repr(value)


leaves = st.sampled_from(["v[0]", "v[1]", "v[-2]", "LIMIT", "0", "3", "-5", "1099511627776", "4611686018427387904"]) | (
    st.integers(-20, 20).map(str)
)


def conditions(operands):
    compared = st.tuples(operands, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), operands).map(" ".join)
    chained = st.tuples(operands, operands, operands).map(lambda it: f"{it[0]} <= {it[1]} < {it[2]}")
    floats = st.sampled_from(["v[2] > 0.5", "v[2] == v[2]", "v[2] >= v[0]", "v[1] != 0.5"])
    others = st.sampled_from(["v[3] == 'a'", "v[3] < NAME", "(v[0], v[1]) > (v[1], LIMIT)", "(v[0], 3) == (3, v[1])"])
    one = compared | chained | floats | others
    return one | st.tuples(one, st.sampled_from(["and", "or", "and not"]), one).map(lambda it: f"({' '.join(it)})")


def larger(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(lambda it: f"({' '.join(it)})"),
        inner.map(lambda it: f"(-{it})"),
        inner.map(lambda it: f"int({it})"),
        inner.map(lambda it: f"abs({it})"),
        inner.map(lambda it: f"doubled({it})"),
        st.tuples(inner, inner).map(lambda it: f"clamped({it[0]}, {it[1]})"),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda it: f"{it[0]}({it[1]}, {it[2]}, 5)"),
        inner.map(lambda it: f"PLACES[{it} % 5]"),
        inner.map(lambda it: f"CHANGING[{it} % 3]"),
        inner.map(lambda it: f"(10, 20, 30)[{it} % 3 - 3]"),
        st.tuples(inner, conditions(inner), inner).map(lambda it: f"({it[0]} if {it[1]} else {it[2]})"),
    )


integers = st.recursive(leaves, larger, max_leaves=6)
texts = st.sampled_from(
    ["v[3]", "NAME", "'even' if v[0] % 2 == 0 else 'odd'", "v[3] if v[1] > 0 else NAME", "WORDS[v[1] % 3]"]
)
float_leaves = st.sampled_from(["v[2]", "0.5", "-0.0", "1e300", "v[0]"])
floats = st.recursive(
    float_leaves,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda it: f"({' '.join(it)})")
        | inner.map(lambda it: f"(-{it})")
    ),
    max_leaves=5,
)
results = st.one_of(
    integers,
    conditions(integers),
    texts,
    floats,
    st.lists(integers | conditions(integers) | texts | st.just("v[2]"), min_size=1, max_size=3).map(
        lambda items: f"({', '.join(items)},)"
    ),
)
numbers = st.integers(-100, 100) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -(2**63), 2**63 - 1])
rows = st.lists(
    st.tuples(numbers, numbers, st.floats() | st.just(0.5), st.sampled_from(["a", "", "\0"])), min_size=1, max_size=8
)


def on_columns(steps, values, timestamps=None) -> list | None:
    """What comes out, with the timestamps; None if that is left to the loop."""
    chain = column_chain(steps)
    assert isinstance(chain, ColumnChain)
    columns = columns_of(values)
    found, done = chain.run(columns if timestamps is None else columns.with_timestamps(timestamps), len(steps))
    if done < len(steps):
        return None
    made, times, _ = found.batch() if len(found) else ([], [], None)
    return list(zip(map(exactly, made), times or [None] * len(made), strict=True))


@settings(max_examples=200, deadline=None)
@given(expression=results, values=rows)
@example(expression="v[0] // v[1]", values=[(-(2**63), -1, 0.0, "")])
@example(expression="v[0] % v[1]", values=[(-(2**63), -1, 0.0, "")])
@example(expression="v[0] * v[1]", values=[(2**62, 2, 0.0, "")])
@example(expression="-v[0]", values=[(-(2**63), 0, 0.0, "")])
@example(expression="v[0] % v[1]", values=[(7, -3, 0.0, ""), (-7, -3, 0.0, "")])
@example(expression="v[0] % 0", values=[(7, -3, 0.0, "")])
def test_a_function_gives_the_same_on_columns(expression, values):
    function = function_of(expression)
    found = on_columns([(MapDescription, function)], values)
    if found is not None:
        assert [value for value, _ in found] == [exactly(function(value)) for value in values]


@st.composite
def bodies(draw, depth=2):
    """Statements that set `x` and `y`, branch, and return."""
    operands = st.sampled_from(["x", "y", "v[0]", "v[1]", "3", "LIMIT"])
    simple = st.tuples(operands, st.sampled_from(["+", "-", "*", "//", "%"]), operands).map(" ".join) | operands
    assignment = st.one_of(
        st.tuples(st.sampled_from(["x = ", "y = ", "x += ", "y: int = "]), simple).map("".join),
        st.tuples(simple, simple).map(lambda it: f"x, y = {it[0]}, {it[1]}"),
    )

    def block(levels):
        lines = draw(st.lists(assignment, max_size=2))
        if levels and draw(st.booleans()):
            lines.append(f"if {draw(conditions(operands))}:\n{indented(block(levels - 1))}")
            if draw(st.booleans()):
                lines[-1] += f"\nelse:\n{indented(block(levels - 1))}"
        if draw(st.booleans()):
            lines.append(f"return ({draw(simple)}, {draw(operands)})")
        return lines

    return ["x = v[0]", "y = v[1]", *block(depth), "return (x, y)"]


def indented(lines):
    return "\n".join(f"    {line}" for each in lines or ["x = x"] for line in each.split("\n"))


@settings(max_examples=300, deadline=None)
@given(statements=bodies(), values=rows)
@example(["if v[0] > 3:\n    z = 1", "return (z, v[1])"], [(1, 2, 0.5, "a"), (5, 2, 0.5, "a")])
def test_a_function_of_several_statements_gives_the_same_on_columns(statements, values):
    function = function_with(*statements)
    if column_function(function) is None:
        return
    found = on_columns([(MapDescription, function)], values)
    if found is not None:
        assert [value for value, _ in found] == [exactly(function(value)) for value in values]


@settings(max_examples=200, deadline=None)
@given(
    mapped=st.lists(integers, min_size=4, max_size=4),
    condition=conditions(st.sampled_from(["v[0]", "v[1]", "3"])),
    yielded=st.lists(st.sampled_from(["v[0]", "v[1] + 1", "LIMIT"]), min_size=1, max_size=3),
    values=rows,
)
def test_chains_give_the_same_on_columns(mapped, condition, yielded, values):
    first = function_of(f"({mapped[0]}, {mapped[1]}, v[2], v[3])")
    keeps = function_of(condition)
    many = function_with(*(f"yield {each}" for each in yielded))
    times = list(range(len(values)))
    steps = [(MapDescription, first), (FilterDescription, keeps), (FlatMapDescription, many)]
    found = on_columns(steps, values, times)
    if found is not None:
        one_by_one = [(first(value), time) for value, time in zip(values, times, strict=True)]
        expected = [(exactly(each), time) for value, time in one_by_one if keeps(value) for each in many(value)]
        assert found == expected


@pytest.mark.parametrize(
    "expression",
    [
        "(v[0] * 7919 % 1000, v[0])",
        "v[0] // 512 * 512 + 511 - v[0] % 512",
        "(v[3], (v[0], v[2]))",
        "'even' if v[0] % 2 == 0 else 'odd'",
        "0 <= v[0] < LIMIT and not v[1] == 2",
        "int(v[1])",
        "abs(v[0] - 50)",
        "max(v[0] - v[1], 0)",
        "PLACES[v[0] % 5] + CHANGING[v[0] % 3]",
        "WORDS[v[1]]",
        "clamped(doubled(v[0]), 3)",
        "v[0] / 2 * v[2]",
        "bool(v[1])",
        "(v[0], v[1]) > (v[1], 1)",
        "v[3] == 'a' and v[2] < v[0]",
    ],
)
def test_common_functions_are_left_to_no_loop(expression):
    """Otherwise the tests above compare one way with itself."""
    values = [(number, number % 3, 0.5, "a") for number in range(100)]
    assert on_columns([(MapDescription, function_of(expression))], values) is not None


@pytest.mark.parametrize(
    "expression",
    [
        "v[0] / 0",
        "v[0] ** 2",
        "v[0] and v[1]",
        "[v[0]]",
        "v[0] << 1",
        "f'{v[0]}'",
        "v[0] is None",
        "abs()",
        "max(v[0])",
        "doubled(v[0], 1)",
        "endless(v[0])",
        "PLACES[v[0] + 4]",
        "missing(v[0])",
    ],
)
def test_other_functions_do_not_qualify(expression):
    function = column_function(function_of(expression))
    if function is not None:
        assert on_columns([(MapDescription, function_of(expression))], [(1, 2, 0.5, "a")]) is None


def test_a_function_of_several_statements_is_left_to_no_loop():
    """Otherwise the property compares one way with itself."""
    function = function_with(
        "newest, lot = v[0] // 50, v[0] % 5",
        "opened = newest * 3 + 2",
        "if PLACES[lot] > 1:\n    opened -= opened % 10\nelif v[1] == 2:\n    return (0, v[0])",
        "return (max(opened, 0), v[0])",
    )
    values = [(number, number % 3, 0.5, "a") for number in range(300)]
    found = on_columns([(MapDescription, function)], values)
    assert [value for value, _ in found] == [exactly(function(value)) for value in values]


def test_a_generator_may_set_variables_first():
    many = function_with("half = v[0] // 2", "yield half", "half += LIMIT", "yield half")
    values = [(number, 0, 0.5, "a") for number in range(10)]
    found = on_columns([(FlatMapDescription, many)], values)
    assert [value for value, _ in found] == [exactly(each) for value in values for each in many(value)]


class Scaling:
    unit = 3

    def __init__(self):
        self.factor = 2
        self.asked = 0

    def scaled(self, number):
        return number * self.factor + self.unit

    def counted(self, number):
        return number + self.counter

    @property
    def counter(self):
        self.asked += 1
        return self.asked


def test_attributes_of_a_method_s_object_are_looked_up_if_that_has_no_effect():
    scaling = Scaling()
    scaled = on_batches(scaling.scaled)
    assert scaled([1, 2]) == [5, 7]
    scaling.factor, scaling.unit = 10, 0
    assert scaled([1, 2]) == [10, 20]
    assert on_batches(scaling.counted)([1, 2]) is None
    assert scaling.asked == 0


def test_a_list_may_change_between_batches():
    table = [1, 2, 3]
    looked_up = on_batches(lambda number: table[number] + len(table))
    assert looked_up([2, 0]) == [6, 4]
    table[2] = 30
    table.append(4)
    assert looked_up([2, 0]) == [34, 5]


def test_a_tuple_may_be_replaced_between_batches():
    table = (1, 2, 3)
    looked_up = on_batches(lambda number: table[number])
    assert looked_up([2, -3]) == [3, 1]
    table = (4, 5, 6)
    assert looked_up([2, -3]) == [6, 4]


def test_a_name_means_what_it_means_when_the_batch_comes():
    step = 2

    def add(number):
        return number + step

    added = on_batches(add)
    assert added([1, 2]) == [3, 4]
    step = 10
    assert added([1, 2]) == [11, 12]
    step = 2**70
    assert added([1, 2]) is None


# --- jobs ------------------------------------------------------------------------------------------------------------


class TimeOfPair(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return int(value[1])


class CountsAndSeesTime(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def job(records: int, divisor: int, **config: str):
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline", **config})
    )
    env.set_parallelism(2)
    source = NumberSequenceSource(0, records - 1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfPair())
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(lambda number: (number * 7919 % 101, 1000 // (number - divisor) + number * 3))
        .filter(lambda pair: pair[0] % 3 != 0)
        .name("some")
        .assign_timestamps_and_watermarks(times)
        .key_by(lambda pair: pair[0])
        .process(CountsAndSeesTime())
    )


ON_AND_OFF = [
    {},
    {"penstock.inline-functions.enabled": "false"},
    {"penstock.columnar-exchange.enabled": "false"},
]


@pytest.fixture
def columns_from_the_beginning(monkeypatch):
    for name in ("_LEAST_RECORDS", "_MANY_RECORDS", "_MANY_NUMBERS"):
        monkeypatch.setattr(outputs, name, 1)


def test_a_job_gives_the_same_on_columns(columns_from_the_beginning, monkeypatch):
    runs: list[int] = []
    run = ColumnChain.run
    monkeypatch.setattr(ColumnChain, "run", lambda self, *given: runs.append(len(given[0])) or run(self, *given))
    outcomes = [(sorted(job(20_000, -1, **config).execute_and_collect()), sum(runs)) for config in ON_AND_OFF]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0] == (outcomes[0][0], 20_000)  # So only the first job ran on columns, and all of it.
    assert len(outcomes[0][0]) == 13_267


WINDOWS = [
    TumblingEventTimeWindows.of(Time.milliseconds(500)),
    SlidingEventTimeWindows.of(Time.milliseconds(900), Time.milliseconds(300)),
    EventTimeSessionWindows.with_gap(Time.milliseconds(60)),
]


@pytest.mark.parametrize("assigner", WINDOWS, ids=lambda assigner: type(assigner).__name__)
@pytest.mark.parametrize("is_timed_last", [False, True])
def test_windows_behind_columns_combine_as_they_do_behind_others(columns_from_the_beginning, assigner, is_timed_last):
    def results(**config):
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"execution.target": "inline", **config})
        )
        env.set_parallelism(2)
        numbers = env.from_source(NumberSequenceSource(0, 19_999), WatermarkStrategy.no_watermarks(), "numbers")
        times = WatermarkStrategy.for_monotonous_timestamps()
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        if is_timed_last:
            mapped = numbers.map(lambda number: (number % 7, number), pair)
            timed = mapped.assign_timestamps_and_watermarks(times.with_timestamp_assigner(TimeOfPair()))
        else:
            stamped = numbers.assign_timestamps_and_watermarks(times.with_timestamp_assigner(lambda number, _: number))
            timed = stamped.map(lambda number: (number % 7, number), pair)
        windows = timed.key_by(lambda element: element[0], Types.LONG()).window(assigner)
        reduced = windows.reduce(lambda one, other: (one[0], one[1] + other[1]), output_type=pair)
        return sorted(reduced.execute_and_collect())

    without = results(**{"penstock.columnar-exchange.enabled": "false", "penstock.combine.enabled": "false"})
    assert len(without) >= 7
    assert [results(), results(**{"penstock.combine.enabled": "false"})] == [without] * 2


def test_a_job_fails_in_the_same_way_on_columns(columns_from_the_beginning):
    def failure(**config):
        with pytest.raises(JobExecutionError) as failed:
            list(job(20_000, 9_000, **config).execute_and_collect())
        return str(failed.value)

    failures = [failure(**config) for config in ON_AND_OFF]
    assert "9000" in failures[0] and "ZeroDivisionError" in failures[0]
    assert failures[0] == failures[2]


def inline_environment(**config: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline", **config})
    )
    env.set_parallelism(2)
    return env


def numbers_of(env: StreamExecutionEnvironment, records: int):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    source = NumberSequenceSource(0, records - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").assign_timestamps_and_watermarks(times)


def labelled(pair):
    assert pair[0] != 19_992, "unlucky"
    return f"{pair[0]}", pair[1]


def test_functions_behind_those_on_columns_are_called(columns_from_the_beginning):
    """Only the first two of three qualify."""

    def results(**config):
        chain = numbers_of(inline_environment(**config), 19_000).filter(lambda number: number % 3 == 0)
        named = chain.map(lambda number: (number, LIMIT)).name("pairs").map(labelled).name("labels")
        return sorted(named.execute_and_collect())

    assert results() == sorted((f"{number}", LIMIT) for number in range(0, 19_000, 3))
    assert results() == results(**ON_AND_OFF[1])


def test_a_function_behind_those_on_columns_fails_with_its_own_record(columns_from_the_beginning):
    def failure(**config):
        chain = numbers_of(inline_environment(**config), 20_000).filter(lambda number: number % 3 == 0)
        named = chain.map(lambda number: (number, LIMIT)).name("pairs").map(labelled).name("labels")
        with pytest.raises(JobExecutionError) as failed:
            list(named.execute_and_collect())
        return str(failed.value)

    failures = [failure(**config) for config in ON_AND_OFF]
    assert "labels" in failures[0] and "(19992, 7)" in failures[0] and "unlucky" in failures[0]
    assert failures[0] == failures[1] == failures[2]


def test_several_receivers_share_columns(columns_from_the_beginning, monkeypatch):
    ran: list[int] = []
    run = ColumnChain.run
    monkeypatch.setattr(ColumnChain, "run", lambda self, *given: ran.append(len(given[0])) or run(self, *given))

    def results(**config):
        numbers = numbers_of(inline_environment(**config), 20_000)
        even = numbers.filter(lambda number: number % 2 == 0).map(lambda number: (number, "even"))
        tens = numbers.filter(lambda number: number % 10 == 3).map(lambda number: (f"{number}", "tens"))
        return sorted(map(str, even.union(tens).execute_and_collect()))

    found = results()
    assert sum(ran) == 40_000
    assert found == results(**ON_AND_OFF[1]) == results(**ON_AND_OFF[2])
    assert len(found) == 12_000


@pytest.mark.parametrize("label", [lambda pair: pair, lambda pair: (str(pair[0]), pair[1])], ids=["all", "some"])
def test_what_is_combined_may_come_from_columns(columns_from_the_beginning, label):
    """All functions before the window qualify, or only some of them; types are declared, so that they are checked."""

    def results(**config):
        chain = numbers_of(inline_environment(**config), 20_000).filter(lambda number: number % 3 != 0)
        pairs = chain.map(lambda number: (number % 7, number)).map(
            label, None if label((1, 2))[0] == "1" else Types.TUPLE([Types.LONG(), Types.LONG()])
        )
        windows = pairs.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(500)))
        return sorted(windows.reduce(lambda one, other: (one[0], one[1] + other[1])).execute_and_collect())

    without = results(**{"penstock.columnar-exchange.enabled": "false", "penstock.combine.enabled": "false"})
    assert len(without) == 280
    assert [results(), results(**ON_AND_OFF[1]), results(**{"penstock.combine.enabled": "false"})] == [without] * 3


offset = 0


def with_offset(number):
    return number + offset


def moves_offset(number):
    global offset
    offset += 1
    return number


def test_names_outside_of_a_function_are_read_for_each_element_where_a_later_function_may_change_them(monkeypatch):
    monkeypatch.setattr(outputs, "_MANY_RECORDS", 0)
    monkeypatch.setattr(outputs, "_MANY_NUMBERS", 0)
    monkeypatch.setitem(globals(), "offset", 0)
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    )
    numbers = env.from_source(NumberSequenceSource(0, 999), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    found = list(numbers.map(with_offset, Types.LONG()).map(moves_offset, Types.LONG()).execute_and_collect())
    assert found == [2 * number for number in range(1000)]
