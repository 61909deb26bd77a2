"""Jobs in which single elements fail; the same on both targets."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.common import Row, Types, WatermarkStrategy
from penstock.common.exceptions import UserFunctionError
from penstock.common.serialization import Encoder
from penstock.datastream import KeyedProcessFunction, MapFunction, OnError, OutputTag, RuntimeExecutionMode
from penstock.datastream.connectors import DiscardingSink, FileSink, NumberSequenceSource
from penstock.datastream.state import ValueStateDescriptor

FAILED = OutputTag("failed")
KEPT_APART = OnError.to_side_output(FAILED)


def values(stream) -> list:
    with stream.execute_and_collect() as collected:
        return list(collected)


def shown(stream):
    return stream.map(lambda each: (each.operator, each.value, each.key, each.error))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_failed_elements_go_to_their_side_output(run_target, parallelism):
    env = run_target(parallelism)
    parsed = env.from_collection(["1", "two", "3", "four"]).rebalance().map(int).name("parse").on_error(KEPT_APART)
    both = parsed.map(str).union(parsed.get_side_output(FAILED).map(lambda each: f"{each.operator}: {each.value}"))
    assert sorted(values(both)) == ["1", "3", "parse: four", "parse: two"]


def test_the_failure_of_a_later_function_is_its_own(run_target):
    env = run_target(1)
    stream = env.from_collection([2, 1, 0]).map(lambda v: v - 1).name("guarded").on_error(OnError.skip())
    with pytest.raises(UserFunctionError, match=r"'unguarded'.*ZeroDivisionError") as raised:
        values(stream.map(lambda v: 1 // v).name("unguarded"))
    assert raised.value.record == "0"


def test_all_failed_elements_of_a_job(run_target):
    env = run_target(2)
    env.set_on_error(KEPT_APART)
    numbers = env.from_collection(["1", "two", "0", "3"]).map(int).name("parse")
    inverted = numbers.key_by(lambda v: v % 2).map(lambda v: 6 // v).name("invert")
    inverted.filter(lambda v: v.nothing).name("filter").on_error(OnError.skip()).sink_to(DiscardingSink())
    assert sorted(values(shown(env.get_failed_elements()))) == [
        ("invert", 0, 0, "ZeroDivisionError"),
        ("parse", "two", None, "ValueError"),
    ]


def test_functions_behind_the_failed_elements_fail_the_job(run_target):
    env = run_target(1)
    env.set_on_error(KEPT_APART)
    env.from_collection(["two"]).map(int).sink_to(DiscardingSink())
    with pytest.raises(UserFunctionError, match="'report'"):
        values(env.get_failed_elements().map(lambda each: each.no_such_field).name("report"))


def test_the_configuration_skips_in_all_operators(run_target):
    env = run_target(1, {"penstock.on-error": "skip", "penstock.on-error.max-failures": "3"})
    stream = env.from_collection([3, 0, 1]).map(lambda v: 3 // v).flat_map(lambda v: [v] * (v // (v - 1)))
    assert values(stream) == [3]
    env = run_target(1, {"penstock.on-error": "skip", "penstock.on-error.max-failures": "3"})
    with pytest.raises(UserFunctionError, match="More than 3 elements failed within 60000 ms"):
        values(env.from_collection([0] * 4).map(lambda v: 3 // v))


def test_a_result_that_does_not_fit_its_type_is_a_failed_element(run_target):
    env = run_target(1)
    made = env.from_collection([1, 2]).map(
        lambda v: Row(v, "x") if v == 1 else "no row", Types.ROW([Types.INT(), Types.STRING()])
    )
    made.on_error(KEPT_APART)
    assert values(shown(made.get_side_output(FAILED))) == [("Map", 2, None, "InvalidProgramError")]


class FailsOnce(MapFunction):
    """Fails the whole job at an element, in the first attempt."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 700 and self.attempt == 0:
            raise MemoryError("the job restarts")
        return 7 // (value % 100)


def test_failed_elements_are_written_exactly_once(run_target, tmp_path):
    env = run_target(2, {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"})
    env.enable_checkpointing(20)
    numbers = env.from_source(NumberSequenceSource(0, 1999), WatermarkStrategy.no_watermarks(), "numbers")
    made = numbers.map(lambda v: v).disable_chaining().map(FailsOnce(), Types.INT()).on_error(KEPT_APART)
    made.sink_to(FileSink.for_row_format(str(tmp_path / "made"), Encoder.simple_string_encoder()).build())
    failed = made.get_side_output(FAILED).map(lambda each: str(each.value), Types.STRING())
    failed.sink_to(FileSink.for_row_format(str(tmp_path / "failed"), Encoder.simple_string_encoder()).build())
    env.execute()
    written = {
        name: [line for path in (tmp_path / name).rglob("part-*") for line in path.read_text().split()]
        for name in ("made", "failed")
    }
    assert Counter(written["failed"]) == Counter(str(v) for v in range(0, 2000, 100))
    assert Counter(written["made"]) == Counter(str(7 // (v % 100)) for v in range(2000) if v % 100)


class SumAtTheEnd(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + int(value[1]))
        ctx.timer_service().register_event_time_timer(2**62)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), 12 // self.total.value()


def test_in_batch_mode_elements_and_timers_are_left_out_alike(run_target):
    env = run_target(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_on_error(KEPT_APART)
    pairs = env.from_collection([("a", "1"), ("b", "x"), ("a", "2"), ("c", "0"), ("b", "6")])
    sums = pairs.key_by(lambda pair: pair[0]).process(SumAtTheEnd()).name("sums")
    reduced = sums.key_by(lambda pair: 0).reduce(lambda one, two: ("sum", one[1] + two[1])).name("reduce")
    failed = shown(env.get_failed_elements())
    assert sorted(map(str, values(reduced.union(failed)))) == [
        "('sum', 6)",
        "('sums', ('b', 'x'), 'b', 'ValueError')",
        "('sums', None, 'c', 'ZeroDivisionError')",
    ]
