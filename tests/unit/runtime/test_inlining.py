"""Small functions are inlined into generated loops: only the clock shows it."""

from __future__ import annotations

import json
import linecache
import logging
import math
import sys
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.constants import MIN_LONG_VALUE
from penstock.datastream import MapFunction
from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.chain_compiler import FusedOperator
from penstock.runtime.failure import describe_failure
from penstock.runtime.generated_loop import EachLoop, LoopScope
from penstock.runtime.inlining import small_function
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.testing.harness import RecordingOutput

factor = 3


def text_of(function: Any, *arguments: str) -> str:
    """What stands for a call in a generated loop."""
    return LoopScope().call("f0", function, *(arguments or ("v0",)))


def scaled(number):
    """A docstring is no hindrance."""
    return number * factor + 1


def halves(number):
    yield number // 2
    yield number - number // 2


def in_steps(number):
    half = number // 2
    return half


def with_default(number, by=2):
    return number * by


class Adding(MapFunction):
    def __init__(self, number: int) -> None:
        self.number = number

    def map(self, value):
        return value + self.number


# --- what is inlined, and as what ------------------------------------------------------------------------------------


def test_lambdas_and_functions_with_nothing_but_a_return_are_inlined():
    assert text_of(scaled) == "v0 * factor + 1"
    assert text_of(lambda pair: (pair[0], f"{pair[1]!r}!", *pair[2:])) == "(v0[0], f'{v0[1]!r}!', *v0[2:])"
    assert text_of(lambda a, b: a if a > b else b, "held", "value") == "held if held > value else value"


def test_methods_are_inlined_with_their_object():
    scope = LoopScope()
    adding = Adding(5)
    assert scope.call("f0", adding.map, "v0") == "v0 + self_f0.number"
    assert scope.locals == {"self_f0": adding}


def test_generators_with_nothing_but_yields_are_inlined():
    assert LoopScope().yielded("f0", halves, "v0") == ["v0 // 2", "v0 - v0 // 2"]


def parsed(line):
    return json.loads(line)["n"] + math.floor(2.5)


def test_functions_that_call_those_of_modules_are_inlined():
    """Python compiles such calls in another way where it has seen the import."""
    assert text_of(parsed, "v0") == "json.loads(v0)['n'] + math.floor(2.5)"
    assert EachLoop(parsed, "loop")(['{"n": 1}', '{"n": 2}']) == [3, 4]


def frame_of(number):
    return number, sys._getframe().f_code.co_name


def warned(number):
    return warnings.warn(f"{number}", stacklevel=1)


log = logging.getLogger(__name__)


@pytest.mark.parametrize("function", [frame_of, warned, lambda number: log.info("%d", number) or number])
def test_functions_that_look_at_their_frame_are_called(function):
    assert small_function(function, 1) is None


def test_lines_of_a_log_name_the_function(caplog):
    def logged(number):
        log.warning("%d", number)
        yield number

    fused(FlatMapDescription(logged)).process_batch(Batch([1, 2]))
    assert [(record.filename, record.funcName) for record in caplog.records] == [("test_inlining.py", "logged")] * 2


def test_numbers_of_sys_may_stand_in_a_loop():
    assert small_function(lambda number: min(number, sys.maxsize), 1) is not None


def test_of_two_lambdas_on_a_line_each_is_itself():
    first, second = (lambda x: x + 1), (lambda x: x + 2)
    assert (text_of(first), text_of(second)) == ("v0 + 1", "v0 + 2")


@pytest.mark.parametrize(
    "function",
    [
        in_steps,
        with_default,
        lambda number: [each for each in range(number)],
        lambda number: lambda: number,
        lambda number: (seen := number) + seen,
        lambda number: locals(),
        lambda *numbers: numbers[0],
        len,
        print,
        Adding(1),
    ],
    ids=lambda function: getattr(function, "__name__", "object"),
)
def test_others_are_called(function):
    assert text_of(function) == "f0(v0)"


def test_a_function_whose_source_has_changed_is_called():
    source = "def changing(x):\n    return x + 1\n"
    linecache.cache["<changing>"] = (len(source), None, source.splitlines(True), "<changing>")
    scope: dict[str, Any] = {}
    exec(compile(source.replace("+ 1", "+ 1.0"), "<changing>", "exec"), scope)
    assert text_of(scope["changing"]) == "f0(v0)"
    exec(compile(source, "<changing>", "exec"), scope)
    assert text_of(scope["changing"]) == "v0 + 1"


def test_a_function_with_many_operators_in_a_row_is_called():
    text, filename, scope = (
        f"def total(number):\n    return {' + '.join(['number'] * 500)}\n",
        "<total>",
        dict[str, Any](),
    )
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    assert text_of(scope["total"]) == "f0(v0)"
    assert EachLoop(scope["total"], "loop")([1, 2]) == [500, 1000]


def test_a_function_without_source_is_called():
    assert text_of(eval("lambda x: x + 1")) == "f0(v0)"


def test_a_global_with_the_name_of_a_loops_variable_keeps_its_function_from_being_inlined():
    assert text_of(lambda number: number + timestamp) == "f0(v0)"  # type: ignore[name-defined]  # noqa: F821


def test_under_a_debugger_functions_are_called():
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        assert small_function(scaled, 1) is None
    finally:
        sys.settrace(before)


def test_functions_of_another_module_are_called_beside_inlined_ones():
    scope = LoopScope()
    scope.call("f0", scaled, "v0")
    elsewhere: dict[str, Any] = {"factor": 100}
    other = FunctionType(scaled.__code__, elsewhere)
    assert scope.call("f1", other, "v1") == "f1(v1)"


# --- that it means the same ------------------------------------------------------------------------------------------

FUNCTIONS: list[Callable[[Any], Any]] = [
    scaled,
    lambda x: -(x**2),
    lambda x: (x, (x and 1) or 2),
    lambda x: x if not x % 3 else {"a": [x, *range(x % 3)]}["a"],
    lambda x: f"{x:>5}|{x!r}",
    lambda x: 1 < x <= 7 and "ab"[x % 2 :],
    lambda x: not x or x is None,
    lambda x: max(x, factor, key=abs),
    lambda x: f"{x}" + "\"'",
    lambda x: (1.0, True, -0.0, 1e300 * 1e300, x),
    Adding(7).map,
]


@given(st.sampled_from(FUNCTIONS), st.lists(st.integers(-10, 10)))
def test_an_inlined_function_gives_what_the_function_gives(function, values):
    loop = EachLoop(function, "test")
    assert repr(loop(values)) == repr([function(value) for value in values])
    assert text_of(function) != "f0(v0)"


OF_TIMES: list[Callable[[Any, int], Any]] = [
    lambda x, ts: ts**2,
    lambda x, ts: -ts,
    lambda x, ts: x - ts,
    lambda x, ts: ts.bit_length() + x,
    lambda x, ts: (ts if x else ts // 2, [x, 0][ts:], f"{ts}"),
    lambda x, ts: -(2**63) if ts < x else ts % 7,
]


@given(
    st.sampled_from(OF_TIMES), st.lists(st.integers(-10, 10), min_size=1), st.sampled_from([MIN_LONG_VALUE, -1, 0, 5])
)
def test_a_number_as_argument_means_the_same_where_it_is_inlined(function, values, timestamp):
    loop = EachLoop(function, "test", timestamp)
    assert loop(values) == [function(value, timestamp) for value in values]
    assert text_of(function, "v0", str(timestamp)) != f"f0(v0, {timestamp})"


def test_variables_are_looked_up_anew():
    global factor
    step = 1

    def advance() -> None:
        nonlocal step
        step += 1

    loop = EachLoop(lambda x: x + step * factor, "test")
    assert loop([0]) == [3]
    advance()
    assert loop([0]) == [6]
    factor = 5
    try:
        assert loop([0]) == [10]
    finally:
        factor = 3


# --- failures --------------------------------------------------------------------------------------------------------


def fused(*descriptions: OperatorDescription) -> FusedOperator:
    task = TaskInfo("0" * 32, "job", "task", 0, 1, 128)
    contexts = [OperatorContext(task, f"op {at}", f"{at:032x}", int) for at, _ in enumerate(descriptions)]
    operator = FusedOperator(descriptions, contexts)
    operator.setup(contexts[0], RecordingOutput())
    operator.open()
    return operator


def inverse(number):
    return 1 / number


def test_a_failure_in_an_inlined_function_shows_the_function_and_the_record():
    operator = fused(MapDescription(lambda x: x - 3), FilterDescription(lambda x: x > -3), MapDescription(inverse))
    with pytest.raises(ZeroDivisionError) as raised:
        operator.process_batch(Batch([1, 2, 3, 4]))
    failure = describe_failure(raised.value, 0, "task", 0, 1)
    assert (failure.operator, failure.record) == ("op 2", "0")
    assert "in inverse" in failure.user_traceback
    assert "return 1 / number" in failure.user_traceback


def test_a_loop_without_inlined_functions_runs_once_when_it_fails():
    class Seen:
        values: ClassVar[list[int]] = []

    def noting(value):
        Seen.values.append(value)
        return 1 / value

    with pytest.raises(ZeroDivisionError):
        fused(MapDescription(noting)).process_batch(Batch([1, 0]))
    assert Seen.values == [1, 0]


def test_inlined_generators_fuse_with_what_follows():
    operator = fused(FlatMapDescription(halves), FilterDescription(lambda x: x % 2 == 0), MapDescription(scaled))
    operator.process_batch(Batch([3, 4, 5], [10, 11, 12]))
    assert operator.output.records == [(7, 10), (7, 11), (7, 11), (7, 12)]
    assert all("f0(" not in source.text for source in operator.generated_sources())
