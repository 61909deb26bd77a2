from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Instant, Time
from penstock.common.time import parse_duration_ms, to_milliseconds


def test_units_of_durations_and_times_agree():
    for duration, time in [
        (Duration.of_days(2), Time.days(2)),
        (Duration.of_hours(2), Time.hours(2)),
        (Duration.of_minutes(2), Time.minutes(2)),
        (Duration.of_seconds(2), Time.seconds(2)),
        (Duration.of_millis(2), Time.milliseconds(2)),
    ]:
        assert duration.to_millis() == time.to_milliseconds() == to_milliseconds(duration) == to_milliseconds(time)
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Duration.of_seconds(60) == Duration.of_minutes(1) and Time(1000) == Time.seconds(1)
    assert hash(Time(1000)) == hash(Time.seconds(1)) and Time(1) != Duration.of_millis(1)


def test_looks():
    assert (str(Time.seconds(5)), repr(Duration.of_seconds(5)), repr(Duration.of_nanos(5))) == (
        "5000 ms",
        "Duration(5000 ms)",
        "Duration(5 ns)",
    )
    assert repr(Instant(1, 2)) == "Instant<1, 2>"


def test_plain_numbers_and_timedeltas_are_times_too():
    assert to_milliseconds(7) == 7
    assert to_milliseconds(timedelta(seconds=1, microseconds=2500)) == 1002


@pytest.mark.parametrize("bad", [1.5, "5", True, None])
def test_only_whole_numbers_are_times(bad):
    with pytest.raises(TypeError, match="whole number, got"):
        Time(bad)
    with pytest.raises(TypeError, match=r"Duration.of_seconds takes a whole number"):
        Duration.of_seconds(bad)
    with pytest.raises(TypeError, match="milliseconds takes a whole number"):
        to_milliseconds(bad)


@given(st.integers(-(2**50), 2**50))
def test_instant_and_milliseconds_are_the_same_point(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis and 0 <= instant.nanos < 10**9
    assert pickle.loads(pickle.dumps(instant)) == instant


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("5 s", 5000),
        ("200 ms", 200),
        ("200", 200),
        ("1 min", 60_000),
        ("1m", 60_000),
        ("2 hours", 7_200_000),
        ("1 d", 86_400_000),
        ("1500 us", 1),
        ("1500 µs", 1),
        ("999999 ns", 0),
        (" 3 SECONDS ", 3000),
        ("PT5S", 5000),
        ("PT1H2M0.5S", 3_720_500),
        ("P1DT1S", 86_401_000),
        ("pt1m", 60_000),
        (250, 250),
        (Duration.of_seconds(1), 1000),
        (timedelta(seconds=1), 1000),
    ],
)
def test_durations_are_read_in_every_form_flink_reads(text, millis):
    assert parse_duration_ms(text) == millis


@pytest.mark.parametrize("text", ["", "s", "-5 s", "5 parsecs", "1.5 s", "P", "PT", "5 s 3 ms"])
def test_text_that_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration; write a number and one of"):
        parse_duration_ms(text)
