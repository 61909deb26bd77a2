"""The interval join, against a model and in its details."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.common.time import Time
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import OperatorHarness

LATE_LEFT, LATE_RIGHT = OutputTag("late-left", Types.STRING()), OutputTag("late-right", Types.STRING())
TIMES = OutputTag("times", Types.PICKLED_BYTE_ARRAY())


def first(element):
    return element[0]


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


class PairWithTimes(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield TIMES, (ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp())
        ctx.output(TIMES, "both")


def harness(lower, upper, restored=None, function=None, change=lambda join: join, **where):
    def build(stream):
        join = stream.key_by(first).interval_join(stream.key_by(first)).between(lower, upper)
        return change(join).process(function or Pair())

    return OperatorHarness.of(build, restored, **where)


def test_pairs_within_the_bounds_are_joined_whichever_comes_first():
    h = harness(Time.milliseconds(-1), Time.milliseconds(2))
    h.element("a0", at=10)
    h.feed([("a1", 8), ("a2", 9), ("a3", 12), ("a4", 13)], input=1)
    h.element("a5", at=11)
    assert h.output == [("a0", "a2"), ("a0", "a3"), ("a5", "a3"), ("a5", "a4")]


def test_elements_of_different_keys_are_not_joined():
    h = harness(0, 0).element("a", at=1).element("b", at=1, input=1).element("a!", at=1, input=1)
    assert h.output == [("a", "a!")]


def test_pair_has_the_later_timestamp():
    h = harness(-5, 5).element("a0", at=10).element("a1", at=12, input=1).element("a2", at=7, input=1)
    assert h.output_with_timestamps == [(("a0", "a1"), 12), (("a0", "a2"), 10)]


def test_context_gives_both_timestamps_and_has_side_outputs():
    h = harness(-5, 5, function=PairWithTimes()).element("a0", at=10).element("a1", at=12, input=1)
    assert h.recorded.side == {"times": [((10, 12, 12), 12), ("both", 12)]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda join: join, [10, 11, 12]),
        (lambda join: join.lower_bound_exclusive(), [11, 12]),
        (lambda join: join.upper_bound_exclusive(), [10, 11]),
        (lambda join: join.lower_bound_exclusive().upper_bound_exclusive(), [11]),
    ],
)
def test_bounds_can_be_exclusive(change, expected):
    h = harness(0, 2, change=change).element("a", at=10)
    h.feed([(("a", at), at) for at in range(9, 14)], input=1)
    assert [right[1] for _, right in h.output] == expected


def test_elements_are_kept_until_no_partner_can_come():
    h = harness(-3, 5).element("a0", at=10).element("a1", at=10, input=1)
    assert [timer[1:] for timer in h.timers] == [(13, "a", "right"), (15, "a", "left")]
    h.watermark(14)
    assert h.element("a2", at=15, input=1).output[1:] == [("a0", "a2")]
    h.watermark(18)
    assert h.timers == [] and h.state_entries == 0


def test_elements_with_times_near_each_other_are_dropped_together():
    h = harness(0, 1600)
    h.feed([("a", time) for time in range(1_000, 1_100)])
    assert [timer[1:] for timer in h.timers] == [(2_600, "a", "left"), (2_700, "a", "left")]
    h.watermark(2_650)
    assert h.element("a!", at=2_650, input=1).output == [("a", "a!")] * 49
    h.watermark(2_700)
    assert h.timers == [] and h.state_entries == 0


def test_bounds_on_one_side_of_zero_clean_up_too():
    for lower, upper in ((2, 5), (-5, -2)):
        h = harness(lower, upper).element("a0", at=10).element("a1", at=10 + upper, input=1).watermark(30)
        assert h.output == [("a0", "a1")]
        assert h.timers == [] and h.state_entries == 0


def test_late_elements_are_dropped_and_counted():
    h = harness(-5, 5).watermark(10).element("a0", at=9).element("a1", at=9, input=1).element("a2", at=10)
    assert h.metrics["numLateRecordsDropped"] == 2
    assert h.element("a3", at=10, input=1).output == [("a2", "a3")]


def test_late_elements_go_to_the_side_outputs_of_their_side():
    def change(join):
        return join.side_output_left_late_data(LATE_LEFT).side_output_right_late_data(LATE_RIGHT)

    h = harness(-5, 5, change=change).watermark(10).element("a0", at=9).element("a1", at=8, input=1)
    assert h.recorded.side == {"late-left": [("a0", 9)], "late-right": [("a1", 8)]}
    assert h.output == [] and "numLateRecordsDropped" not in h.metrics


def test_elements_need_event_time():
    with pytest.raises(
        InvalidProgramError, match=r"operator 'harness': element 'a0' has no event time, .* call assign_timestamps"
    ):
        harness(0, 1).element("a0")


def test_misuse_is_refused_when_the_job_is_built(env):
    stream = env.from_collection(["a"])
    keyed = stream.key_by(first)
    with pytest.raises(InvalidProgramError, match=r"interval_join: the other stream is not keyed; call key_by"):
        keyed.interval_join(stream)
    with pytest.raises(InvalidProgramError, match="lower bound must not be above the upper one, got 2 ms and 1 ms"):
        keyed.interval_join(keyed).between(2, 1)
    with pytest.raises(TypeError, match="needs a ProcessJoinFunction, got function"):
        keyed.interval_join(keyed).between(1, 2).process(lambda left, right, ctx: [])


elements = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.integers(0, 30), st.booleans()), max_size=30
).map(lambda found: [(side, (key, at), time, wm) for at, (side, key, time, wm) in enumerate(found)])


def feed(h, some, behind):
    for side, value, time, has_watermark in some:
        h.element(value, at=time, input=side)
        if has_watermark and time - behind > h.operator.current_watermark:
            h.watermark(time - behind)
    return h


@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=2)])
@given(elements, st.integers(-6, 6), st.integers(0, 6), st.integers(0, 30), st.sampled_from([1, 100]))
def test_join_does_what_the_model_says_also_across_a_restore(backend, found, lower, width, cut, scale):
    lower, upper = lower * scale, (lower + width) * scale
    found = [(side, value, time * scale, has_watermark) for side, value, time, has_watermark in found]
    before = feed(harness(lower, upper, state_backend=backend), found[:cut], 6 * scale)
    after = feed(harness(lower, upper, before.snapshot(), state_backend=backend), found[cut:], 6 * scale)

    watermark, on_time = -(2**63), []
    for side, value, time, has_watermark in found:
        if time >= watermark:
            # A partner whose time is up is gone, although an element at the watermark itself is not late.
            on_time.append((side, value, time, watermark))
        if has_watermark:
            watermark = max(watermark, time - 6 * scale)
    expected = []
    for at, (side, value, time, seen) in enumerate(on_time):
        for other_side, other, other_time, _ in on_time[:at]:
            kept = max(upper, 0) if other_side == 0 else max(-lower, 0)
            if other_side == side or other[0] != value[0] or other_time + kept <= seen:
                continue
            left, right = ((value, time), (other, other_time))[:: 1 if side == 0 else -1]
            if left[1] + lower <= right[1] <= left[1] + upper:
                expected.append((left[0], right[0]))
    assert sorted(before.output + after.output) == sorted(expected)
    after.watermark(10_000)
    assert after.timers == [] and after.state_entries == 0
    before.close()
    after.close()


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def test_job_with_an_interval_join(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())

    def stream(values):
        return env.from_collection(values).assign_timestamps_and_watermarks(strategy).key_by(first)

    clicks = stream([("a", 10), ("b", 20), ("a", 40)])
    views = stream([("a", 12), ("b", 26), ("a", 41)])
    pairs = clicks.interval_join(views).between(Time.milliseconds(0), Time.milliseconds(5)).process(Pair())
    assert sorted(pairs.set_parallelism(2).execute_and_collect()) == [
        (("a", 10), ("a", 12)),
        (("a", 40), ("a", 41)),
    ]


def test_job_without_timestamps_says_what_to_do(env):
    keyed = env.from_collection(["a"]).key_by(first)
    keyed.interval_join(keyed).between(0, 1).process(Pair()).name("near").print()
    with pytest.raises(JobExecutionError, match=r"operator 'near': element 'a' has no event time"):
        env.execute()
