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
from penstock.runtime.column_functions import ColumnChain, NotInColumnsError, column_chain, column_function
from penstock.runtime.columns import columns_of

LIMIT = 7
NAME = "seven"
_numbers = itertools.count()


def function_of(expression: str, keyword: str = "return"):
    """A function whose source is available."""
    filename = f"<function {next(_numbers)}>"
    text = f"def made(v):\n    {keyword} {expression}\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict = {"LIMIT": LIMIT, "NAME": NAME}
    exec(compile(text, filename, "exec"), scope)
    return scope["made"]


def exactly(value):
    if isinstance(value, tuple):
        return type(value), [exactly(item) for item in value]
    return type(value), struct.pack("d", value) if type(value) is float else value


leaves = st.sampled_from(["v[0]", "v[1]", "v[-2]", "LIMIT", "0", "3", "-5", "1099511627776", "4611686018427387904"]) | (
    st.integers(-20, 20).map(str)
)


def conditions(operands):
    compared = st.tuples(operands, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), operands).map(" ".join)
    chained = st.tuples(operands, operands, operands).map(lambda it: f"{it[0]} <= {it[1]} < {it[2]}")
    floats = st.sampled_from(["v[2] > 0.5", "v[2] == v[2]"])
    one = compared | chained | floats
    return one | st.tuples(one, st.sampled_from(["and", "or", "and not"]), one).map(lambda it: f"({' '.join(it)})")


def larger(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(lambda it: f"({' '.join(it)})"),
        inner.map(lambda it: f"(-{it})"),
        inner.map(lambda it: f"int({it})"),
        st.tuples(inner, conditions(inner), inner).map(lambda it: f"({it[0]} if {it[1]} else {it[2]})"),
    )


integers = st.recursive(leaves, larger, max_leaves=6)
texts = st.sampled_from(["v[3]", "NAME", "'even' if v[0] % 2 == 0 else 'odd'", "v[3] if v[1] > 0 else NAME"])
results = st.one_of(
    integers,
    conditions(integers),
    texts,
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
    try:
        found = chain.run(columns if timestamps is None else columns.with_timestamps(timestamps))
    except NotInColumnsError:
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
    many = function_of("\n    yield ".join(yielded), "yield")
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
    ],
)
def test_common_functions_are_left_to_no_loop(expression):
    """Otherwise the tests above compare one way with itself."""
    values = [(number, number % 3, 0.5, "a") for number in range(100)]
    assert on_columns([(MapDescription, function_of(expression))], values) is not None


@pytest.mark.parametrize(
    "expression",
    ["v[0] / 2", "v[0] ** 2", "abs(v[0])", "v[0] and v[1]", "[v[0]]", "v[0] << 1", "f'{v[0]}'", "v[0] is None"],
)
def test_other_functions_do_not_qualify(expression):
    function = column_function(function_of(expression))
    if function is not None:
        assert on_columns([(MapDescription, function_of(expression))], [(1, 2, 0.5, "a")]) is None


def test_a_name_means_what_it_means_when_the_batch_comes():
    step = 2

    def add(number):
        return number + step

    chain = column_chain([(MapDescription, add)])
    assert chain.run(columns_of([1, 2])).batch().values == [3, 4]
    step = 10
    assert chain.run(columns_of([1, 2])).batch().values == [11, 12]
    step = 2**70
    with pytest.raises(NotInColumnsError):
        chain.run(columns_of([1, 2]))


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
    for name in ("_LEAST_RECORDS", "_MANY_RECORDS", "_NUMBERS_THAT_PAY"):
        monkeypatch.setattr(outputs, name, 1)


def test_a_job_gives_the_same_on_columns(columns_from_the_beginning, monkeypatch):
    runs: list[int] = []
    run = ColumnChain.run
    monkeypatch.setattr(ColumnChain, "run", lambda self, columns: runs.append(len(columns)) or run(self, columns))
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
