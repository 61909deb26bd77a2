"""Keys that are one key for a dictionary are in one key group, whatever their types."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import math
import pickle
import uuid
from collections import namedtuple
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Row
from penstock.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from penstock.runtime.key_groups import KeyOwners, key_group_of
from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.nan_keys import NAN, as_key, with_one_nan
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import JobInEpochs, OperatorHarness


class Text(str):
    pass


class Blob(bytes):
    pass


class Moment(datetime.datetime):
    pass


class Small(enum.IntEnum):
    NONE = 0
    ONE = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Reading:
    sensor: object
    level: object


Pair = namedtuple("Pair", "first second")

# Small ranges, so that equal keys of different types are drawn often.
ZONES = [None, datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1)), ZoneInfo("Europe/Berlin")]
AMBIGUOUS = datetime.datetime(2024, 10, 27, 1, 30)  # Berlin sets its clocks back in the hour after it.
numbers = st.builds(
    lambda kind, number: kind(number),
    st.sampled_from(
        [
            int,
            float,
            bool,
            complex,
            decimal.Decimal,
            fractions.Fraction,
            Small,
            np.bool_,
            np.int8,
            np.uint64,
            np.int64,
            np.float16,
            np.float32,
            np.float64,
            np.longdouble,
            np.complex64,
            np.clongdouble,
        ]
    ),
    st.integers(0, 1),
)
texts = st.builds(lambda kind, text: kind(text), st.sampled_from([str, Text, np.str_]), st.sampled_from(["", "a"]))
blobs = st.builds(
    lambda kind, blob: kind(blob), st.sampled_from([bytes, Blob, np.bytes_]), st.sampled_from([b"", b"a"])
)
datetimes = st.builds(
    lambda kind, hours, zone, fold: kind(AMBIGUOUS + datetime.timedelta(hours=hours), zone, fold),
    st.sampled_from(
        [
            lambda moment, zone, fold: moment.replace(tzinfo=zone, fold=fold),
            lambda moment, zone, fold: Moment(*moment.timetuple()[:6], tzinfo=zone, fold=fold),  # type: ignore[misc]
            lambda moment, zone, fold: pd.Timestamp(moment.replace(fold=fold), tz="UTC" if zone else None),
            lambda moment, zone, fold: pd.Timestamp(moment.replace(fold=fold)).as_unit("s"),
            lambda moment, zone, fold: np.datetime64(moment, ["s", "ns"][fold]),
        ]
    ),
    st.integers(-1, 2),
    st.sampled_from(ZONES),
    st.integers(0, 1),
)
days = st.sampled_from(
    [
        datetime.date(2024, 1, 1),
        np.datetime64("2024"),
        np.datetime64("2024-01-01"),
        np.datetime64("2024-01-01T00", "ms"),
    ]
)
times = st.builds(
    lambda hour, zone, fold: datetime.time(hour, tzinfo=zone, fold=fold),
    st.integers(11, 13),
    st.sampled_from(ZONES),
    st.integers(0, 1),
)
durations = st.sampled_from(
    [
        datetime.timedelta(minutes=1),
        pd.Timedelta("60s"),
        np.timedelta64(60, "s"),
        np.timedelta64(1, "m"),
        np.timedelta64(1, "ns"),
        pd.Timedelta(1, "ns"),
        np.timedelta64(12, "M"),
        np.timedelta64(1, "Y"),
    ]
)
others = st.sampled_from(
    [
        None,
        Access(0),
        Access.READ,
        Access.READ | Access.WRITE,
        range(0),
        range(2, 1),
        range(0, 3, 2),
        range(0, 4, 2),
        pd.NaT,
        pd.NA,
        pd.Period("2024", "Y"),
        pd.Interval(0, 1),
        pd.Interval(0.0, 1.0),
        uuid.UUID(int=1),
        uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe),
    ]
)
scalars = st.one_of(numbers, texts, blobs, datetimes, days, times, durations, others)
keys = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.builds(Reading, inner, inner),
        st.builds(Row, inner, inner),
        st.builds(lambda a, b: Row(a=a, b=b), inner, inner),
        st.builds(lambda a, b: Row(b=b, a=a), inner, inner),
        st.frozensets(texts, max_size=2),
    ),
    max_leaves=4,
)


def are_one_key(one, other) -> bool:
    try:
        return len({one: 1, other: 2}) == 1
    except (TypeError, ValueError, np.exceptions.DTypePromotionError):  # pd.NA and a few others cannot be compared.
        return False


@settings(max_examples=800)
@given(scalars, scalars)
def test_scalars_that_are_one_key_are_in_one_group(one, other):
    if are_one_key(one, other):
        assert stable_hash(one) == stable_hash(other)
        assert key_group_of(one, 32768) == key_group_of(other, 32768)


@settings(max_examples=300)
@given(st.lists(keys, min_size=2, max_size=6))
def test_keys_that_are_one_key_are_in_one_group(drawn):
    for one in drawn:
        for other in drawn:
            if are_one_key(one, other):
                assert stable_hash(one) == stable_hash(other)


@given(keys)
def test_pickled_key_stays_in_its_group(key):
    assert stable_hash(pickle.loads(pickle.dumps(key))) == stable_hash(key)


@given(keys)
def test_key_without_nan_is_left_alone(key):
    assert as_key(key) is key


# --- not a number --------------------------------------------------------------------------------------------------


NANS = [
    math.nan,
    float("nan"),
    np.float32("nan"),
    np.float64("nan"),
    np.longdouble("nan"),
    decimal.Decimal("nan"),
    complex(math.nan, 0),
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
]


@pytest.mark.parametrize("nan", NANS, ids=lambda nan: type(nan).__name__)
@pytest.mark.parametrize(
    "around",
    [
        lambda nan: nan,
        lambda nan: (1, nan),
        lambda nan: Pair(nan, "a"),
        lambda nan: ("a", ("b", nan)),
        lambda nan: frozenset({nan, 1}),
        lambda nan: Reading("a", nan),
        lambda nan: Row("a", nan),
        lambda nan: Row(sensor="a", level=nan),
    ],
)
def test_nan_is_one_key_also_in_another_process(nan, around):
    [one] = with_one_nan([around(nan)])
    other = as_key(pickle.loads(pickle.dumps(around(nan))))
    assert type(one) is type(around(NAN))
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert stable_hash(one) == stable_hash(other)


def test_keys_that_cannot_hold_nan_are_not_copied():
    for keys_of_batch in (["a", "b"], [1, 2], [("a", 1)], [np.int64(1)], [None, b"a"]):
        assert with_one_nan(keys_of_batch) is keys_of_batch


def test_nan_key_is_a_float_to_the_user():
    assert isinstance(NAN, float)
    assert math.isnan(NAN)
    assert math.nan != NAN
    assert repr(NAN) == "nan"


def counted(stream):
    return stream.key_by(lambda record: record[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("rebuilds", [False, True])
def test_records_with_a_nan_key_have_one_state(parallelism, rebuilds):
    job = JobInEpochs(counted, parallelism, rebuilds=rebuilds)
    for number in (1, 2, 3):
        job.epoch([(float("nan"), 1), (np.float64("nan"), 1), (0.5, 1), (("a", float("nan")), 1)])
        end = job.epoch([(float("nan"), 0), (0.5, 0), (("a", float("nan")), 0)])
        assert end == sorted([f"(nan, {2 * number})", f"(0.5, {number})", f"(('a', nan), {number})"])
    job.close()


@pytest.mark.parametrize("missing", [math.nan, pd.NaT, pd.NA])
def test_records_with_a_nan_key_are_one_group_in_batch_mode(missing):
    config = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    records = [(float("nan") if missing is math.nan else missing, 1) for _ in range(5)]
    assert [total for _, total in counted(env.from_collection(records)).execute_and_collect()] == [5]


MISSING = [pd.NaT, pd.NA, None, math.nan, (pd.NaT, 1), (pd.NA, 1), (None, 1)]
"""Most of them have the same hash in all processes, and none equals another."""


class UsesAllState(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.by_key = runtime_context.get_map_state(MapStateDescriptor("by-key"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.by_key.put(value[1], self.count.value())
        timers = ctx.timer_service()
        timers.register_event_time_timer(10)
        timers.register_event_time_timer(20)
        timers.delete_event_time_timer(20)

    def on_timer(self, timestamp, ctx):
        yield repr(ctx.get_current_key()), timestamp, self.count.value(), sorted(self.by_key.items(), key=repr)
        if timestamp == 10:
            ctx.timer_service().register_event_time_timer(15)


@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=2)], ids=["memory", "disk"])
@pytest.mark.parametrize("is_restored", [False, True])
def test_missing_values_are_keys_of_state_and_timers_like_others(backend, is_restored):
    def harness(restored=None):
        keyed = lambda stream: stream.key_by(lambda value: value[0]).process(UsesAllState())
        return OperatorHarness.of(keyed, restored, state_backend=backend)

    running = harness().batch([((key, each), 1) for each in MISSING for key in MISSING])
    running = harness(running.snapshot()) if is_restored else running
    written = sorted(zip(MISSING, range(1, 1 + len(MISSING)), strict=True), key=repr)
    expected = [(repr(key), time, len(MISSING), written) for time in (10, 15) for key in MISSING]
    assert repr(sorted(running.watermark(100).output)) == repr(sorted(expected))
    assert running.timers == []


@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=2)], ids=["memory", "disk"])
@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(10)])
def test_missing_values_are_keys_of_windows_like_others(backend, assigner):
    windowed = lambda stream: stream.key_by(lambda value: value[0]).window(assigner)
    harness = OperatorHarness.of(
        lambda stream: windowed(stream).reduce(lambda a, b: (a[0], a[1] + b[1])), state_backend=backend
    )
    for at in (1, 2, 3):
        harness.batch([((key, 1), at) for key in MISSING])
    assert sorted(map(repr, harness.watermark(100).output)) == sorted(repr((key, 3)) for key in MISSING)
    assert (harness.state_entries, harness.timers) == (0, [])


@pytest.mark.parametrize("many", [0, 1 << 13])
def test_nan_is_noticed_every_time(many):
    owners = KeyOwners(128, 5, many=many)
    for _ in range(3):
        owners.of(["a", ("b", 1.5), 2.5])
        assert not owners.take_nan_seen()
        owners.of(["a", ("b", math.nan)])
        assert owners.take_nan_seen()
        owners.of([2.5, math.nan])
        assert owners.take_nan_seen()


def test_owner_of_a_nan_key_is_that_of_its_group():
    owners = KeyOwners(128, 5)
    assert owners.of([NAN, math.nan, ("a", NAN)]) == [owners[math.nan], owners[NAN], owners["a", math.nan]]
