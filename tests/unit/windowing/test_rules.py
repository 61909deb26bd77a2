"""When sessions are one, and when windows have ended: one rule for all who ask."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.window import TimeWindow
from penstock.datastream.windowing.windows import TOUCHING, ended_until, has_ended, has_passed, touching

times = st.integers(-20, 20)
spans = st.tuples(times, st.integers(1, 10)).map(lambda each: TimeWindow(each[0], each[0] + each[1]))


@given(spans, spans)
def test_windows_touch_if_they_share_a_moment_or_a_border(one, other):
    shares = bool(set(range(one.start, one.end + 1)) & set(range(other.start, other.end + 1)))
    names = {"start": one.start, "end": one.end, "other_start": other.start, "other_end": other.end}
    as_text = eval(TOUCHING.format(**{name: name for name in names}), names)
    assert shares == touching(*one, other) == touching(*other, one) == one.intersects(other) == as_text


@given(spans, times)
def test_window_has_ended_when_its_last_timestamp_has_passed(window, watermark):
    has = has_passed(window.max_timestamp(), watermark)
    assert has == has_ended(window.end, watermark) == (window.end <= ended_until(watermark))
    assert has == all(has_passed(time, watermark) for time in range(window.start, window.end))
