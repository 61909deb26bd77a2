"""Asynchronous calls: order, capacity, timeouts, retries, failures.

The tests open gates for the calls, so that nothing depends on how long something takes.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict

import pytest

from penstock.common.exceptions import InvalidProgramError, UserFunctionError
from penstock.common.time import Time
from penstock.datastream.async_data_stream import AsyncDataStream
from penstock.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from penstock.datastream.async_retry_strategies import FixedDelayRetryStrategy
from penstock.datastream.functions import AsyncFunction
from penstock.testing import OperatorHarness

LONG = Time.hours(1)
SHORT = Time.milliseconds(5)


@pytest.fixture
def harness():
    """Makes harnesses and closes them."""
    opened = []

    def make(function, ordered=True, timeout=LONG, capacity=100, retry=None):
        kind = "ordered" if ordered else "unordered"

        def build(stream):
            if retry is None:
                return getattr(AsyncDataStream, f"{kind}_wait")(stream, function, timeout, capacity)
            return getattr(AsyncDataStream, f"{kind}_wait_with_retry")(stream, function, timeout, retry, capacity)

        opened.append(OperatorHarness.of(build))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


class Twice(AsyncFunction):
    async def async_invoke(self, value):
        return [value, value]


class Backwards(AsyncFunction):
    """A call is answered only after all calls for smaller numbers have been: in the order of numbers."""

    def open(self, runtime_context):
        self.gates = defaultdict(asyncio.Event)

    async def async_invoke(self, value):
        if value > 0:
            await self.gates[value - 1].wait()
        self.gates[value].set()
        return [value]


class Never(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.Event().wait()

    def timeout(self, value):
        return [f"no answer for {value}"]


class Flaky(AsyncFunction):
    """Fails or answers with nothing, as often as it is told to."""

    def __init__(self, failures=0, empties=0):
        self.failures = failures
        self.empties = empties
        self.calls = 0

    async def async_invoke(self, value):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(f"call {self.calls}")
        return [] if self.calls <= self.failures + self.empties else [value]


def retries(attempts):
    return FixedDelayRetryStrategy(attempts, 1, empty_result_predicate, has_exception_predicate)


def test_every_result_takes_the_timestamp_of_its_element(harness):
    h = harness(Twice()).batch([("a", 1), ("b", 2)])
    h.operator.end_epoch()
    assert h.output_with_timestamps == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    h.element("c").operator.end_epoch()
    assert h.output_with_timestamps[4:] == [("c", None), ("c", None)]


def test_ordered_results_keep_the_order_of_their_elements(harness):
    h = harness(Backwards()).batch([(n, n) for n in (3, 1, 2, 0)])
    h.operator.end_epoch()
    assert h.output == [3, 1, 2, 0]


def test_unordered_results_come_as_they_are_ready(harness):
    h = harness(Backwards(), ordered=False).batch([(n, n) for n in (3, 1, 2, 0)])
    h.operator.end_epoch()
    assert h.output == [0, 1, 2, 3]


@pytest.mark.parametrize("ordered", [True, False])
def test_watermark_waits_for_all_elements_before_it(harness, ordered):
    h = harness(Backwards(), ordered).batch([(1, 1), (0, 2)]).watermark(5).batch([(3, 6), (2, 7)]).end_input()
    kinds = [kind for kind, _, _ in h.recorded.events]
    assert kinds == ["element", "element", "watermark", "element", "element", "watermark"]
    assert sorted(h.output[:2]) == [0, 1] and sorted(h.output[2:]) == [2, 3]


@pytest.mark.parametrize("step", ["end_epoch", "finish"])
def test_nothing_is_in_flight_afterwards(harness, step):
    h = harness(Backwards(), ordered=False).batch([(n, n) for n in (2, 1, 0)])
    getattr(h.operator, step)()
    assert sorted(h.output) == [0, 1, 2]


def test_snapshot_waits_for_what_is_in_flight(harness):
    h = harness(Backwards()).batch([(n, n) for n in (2, 1, 0)])
    h.snapshot()
    assert h.output == [2, 1, 0]


@pytest.mark.parametrize("ordered", [True, False])
def test_no_more_calls_than_the_capacity_at_a_time(harness, ordered):
    class Crowded(AsyncFunction):
        def open(self, runtime_context):
            self.now = self.most = 0

        async def async_invoke(self, value):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return [value]

    h = harness(Crowded(), ordered, capacity=3).batch([(n, n) for n in range(50)])
    h.operator.end_epoch()
    assert sorted(h.output) == list(range(50))
    assert 1 <= h.operator.user_function.function.most <= 3


def test_answers_that_are_there_leave_without_waiting_for_the_others(harness):
    class Silent(AsyncFunction):
        async def async_invoke(self, value):
            if value == "never":
                await asyncio.Event().wait()
            return [value]

    h = harness(Silent(), ordered=False, capacity=2).batch([("never", 1), ("now", 2), ("then", 3)])
    while len(h.output) < 2:
        h.processing_time(1)
    assert h.output == ["now", "then"]


def test_timeout_gives_the_results_instead(harness):
    h = harness(Never(), timeout=SHORT).batch([(1, 1), (2, 2)])
    h.operator.end_epoch()
    assert h.output_with_timestamps == [("no answer for 1", 1), ("no answer for 2", 2)]


def test_timeout_fails_the_task_unless_overridden(harness):
    class Waits(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match="Waits: async_invoke did not finish in time for element 'a'; override"):
        harness(Waits(), timeout=SHORT).element("a").operator.end_epoch()


def test_timeout_covers_all_attempts_together(harness):
    class Fails(Never):
        async def async_invoke(self, value):
            raise ConnectionError

    h = harness(Fails(), timeout=SHORT, retry=retries(10**9)).element(1)
    h.operator.end_epoch()
    assert h.output == ["no answer for 1"]


def test_exception_is_tried_again(harness):
    h = harness(Flaky(failures=2), retry=retries(2)).element("a")
    h.operator.end_epoch()
    assert h.output == ["a"]
    assert h.operator.user_function.function.calls == 3


def test_empty_result_is_tried_again(harness):
    h = harness(Flaky(empties=2), retry=retries(3)).element("a")
    h.operator.end_epoch()
    assert h.output == ["a"]


def test_last_outcome_counts_when_retries_are_used_up(harness):
    with pytest.raises(ConnectionError, match="call 3"):
        harness(Flaky(failures=9), retry=retries(2)).element("a").operator.end_epoch()
    h = harness(Flaky(empties=9), retry=retries(2)).element("a")
    h.operator.end_epoch()
    assert h.output == []
    assert h.operator.user_function.function.calls == 3


def test_outcomes_without_a_predicate_are_not_tried_again(harness):
    only_empty = FixedDelayRetryStrategy(5, 1, empty_result_predicate, None)
    with pytest.raises(ConnectionError, match="call 1"):
        harness(Flaky(failures=1), retry=only_empty).element("a").operator.end_epoch()


def test_exception_fails_the_task(harness):
    with pytest.raises(ConnectionError, match="call 1"):
        harness(Flaky(failures=1)).element("a").watermark(1)


def test_cancelled_call_fails_the_task(harness):
    class Cancels(AsyncFunction):
        async def async_invoke(self, value):
            raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="operator 'harness': async_invoke was cancelled"):
        harness(Cancels()).element("a").operator.end_epoch()


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("ordered", [True, False])
def test_exit_fails_the_task_instead_of_hanging_it(harness, ordered, ending):
    class Exits(AsyncFunction):
        async def async_invoke(self, value):
            if value == "exit":
                raise ending
            await asyncio.Event().wait()

    with pytest.raises(type(ending)):
        harness(Exits(), ordered).element("waits").element("exit").operator.end_epoch()


def test_exit_in_a_coroutine_of_the_functions_own_fails_the_task(harness):
    class Starts(AsyncFunction):
        async def async_invoke(self, value):
            self.task = asyncio.ensure_future(self.exit())
            await asyncio.Event().wait()

        async def exit(self):
            sys.exit("enough")

    with pytest.raises(SystemExit, match="enough"):
        harness(Starts()).element("a").operator.end_epoch()


def test_exit_in_timeout_fails_the_task(harness):
    class ExitsLate(Never):
        def timeout(self, value):
            sys.exit("enough")

    with pytest.raises(SystemExit, match="enough"):
        harness(ExitsLate(), timeout=SHORT).element("a").operator.end_epoch()


def test_results_must_be_a_list(harness):
    class Single(AsyncFunction):
        async def async_invoke(self, value):
            return value

    for value, rule in ((5, "should be of list type"), (None, "cannot be none")):
        message = f"The result of AsyncFunction {rule}, please check.*async_invoke returned {value} for {value}"
        with pytest.raises(RuntimeError, match=message):
            harness(Single()).element(value).operator.end_epoch()


def test_close_ends_calls_and_thread():
    h = OperatorHarness.of(lambda stream: AsyncDataStream.ordered_wait(stream, Never(), LONG)).element(1)
    assert any(thread.name == "async-wait-harness" for thread in threading.enumerate())
    h.close()
    assert not any(thread.name == "async-wait-harness" for thread in threading.enumerate())
    h.close()


def test_misuse_is_refused_when_the_job_is_built(env):
    stream = env.from_collection([1])
    with pytest.raises(TypeError, match=r"an async wait needs an AsyncFunction.* got function"):
        AsyncDataStream.ordered_wait(stream, lambda value: [value], LONG)
    with pytest.raises(InvalidProgramError, match="capacity of an async wait must be at least 1, got 0"):
        AsyncDataStream.ordered_wait(stream, Twice(), LONG, 0)


def test_job_with_both_kinds(env):
    ordered = AsyncDataStream.ordered_wait(env.from_collection([3, 1, 2, 0]), Backwards(), LONG)
    assert list(ordered.execute_and_collect()) == [3, 1, 2, 0]
    unordered = AsyncDataStream.unordered_wait(env.from_collection([3, 1, 2, 0]), Backwards(), LONG)
    assert list(unordered.execute_and_collect()) == [0, 1, 2, 3]


def test_failure_names_operator_and_record(env):
    class Inverse(AsyncFunction):
        async def async_invoke(self, value):
            return [1 // value]

    AsyncDataStream.ordered_wait(env.from_collection([2, 0, 1]), Inverse(), LONG).name("inverse").print()
    with pytest.raises(UserFunctionError, match="operator 'inverse', subtask 1/1, at record 0: Zero") as info:
        env.execute()
    assert "return [1 // value]" in info.value.user_traceback
