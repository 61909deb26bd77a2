from __future__ import annotations

import pickle
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.constants import MAX_LONG_VALUE
from penstock.datastream.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
    Window,
)

times = st.integers(-(10**6), 10**6)


class Merges(MergingWindowAssigner.MergeCallback):
    def __init__(self):
        self.found = []

    def merge(self, to_be_merged, merge_result):
        self.found.append((set(to_be_merged), merge_result))


def merges_of(windows):
    merges = Merges()
    TimeWindow.merge_windows(windows, merges)
    return merges.found


def test_time_window_holds_start_but_not_end():
    window = TimeWindow(5, 10)
    assert (window.start, window.end, window.max_timestamp()) == (5, 10, 9)


def test_windows_know_their_kind_and_print_themselves():
    assert all(isinstance(w, Window) for w in (TimeWindow(0, 1), CountWindow(3), GlobalWindow.get()))
    assert [repr(w) for w in (TimeWindow(0, 1), CountWindow(3), GlobalWindow.get())] == [
        "TimeWindow(start=0, end=1)",
        "CountWindow(id=3)",
        "GlobalWindow",
    ]


def test_windows_without_an_end_have_the_largest_timestamp():
    assert CountWindow(7).max_timestamp() == GlobalWindow.get().max_timestamp() == MAX_LONG_VALUE


def test_equal_windows_are_one_key():
    assert (
        len({TimeWindow(0, 5), TimeWindow(0, 5), CountWindow(0), CountWindow(0), GlobalWindow(), GlobalWindow.get()})
        == 3
    )


def test_time_windows_are_ordered_by_start_then_end():
    assert sorted([TimeWindow(1, 3), TimeWindow(0, 9), TimeWindow(1, 2)]) == [(0, 9), (1, 2), (1, 3)]


@pytest.mark.parametrize("window", [TimeWindow(-3, 4), CountWindow(8), GlobalWindow.get()])
def test_windows_survive_pickling(window):
    restored = pickle.loads(pickle.dumps(window, protocol=5))
    assert restored == window
    assert type(restored) is type(window)


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-3, 4)),
        (CountWindowSerializer(), CountWindow(8)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ],
)
def test_serializers_read_what_they_wrote(serializer, window):
    stream = BytesIO()
    serializer.serialize(window, stream)
    stream.seek(0)
    assert serializer.deserialize(stream) == window
    assert stream.read() == b""


def test_touching_windows_intersect():
    assert TimeWindow(0, 5).intersects(TimeWindow(5, 6))
    assert not TimeWindow(0, 5).intersects(TimeWindow(6, 7))


def test_cover_spans_both():
    assert TimeWindow(0, 5).cover(TimeWindow(9, 12)) == TimeWindow(0, 12)


@pytest.mark.parametrize(
    ("timestamp", "offset", "size", "start"),
    [
        (0, 0, 5, 0),
        (4, 0, 5, 0),
        (5, 0, 5, 5),
        (-1, 0, 5, -5),
        (-5, 0, 5, -5),
        (-6, 0, 5, -10),
        (3, 4, 5, -1),
        (4, 4, 5, 4),
        (3, -1, 5, -1),
        (4, -1, 5, 4),
        (-2, -1, 5, -6),
    ],
)
def test_window_start_with_offset_is_flinks(timestamp, offset, size, start):
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == start


@given(times, st.integers(1, 1000), st.data())
def test_window_start_is_the_last_grid_point_at_or_before_the_timestamp(timestamp, size, data):
    offset = data.draw(st.integers(-size + 1, size - 1))
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0


def test_only_groups_of_several_windows_are_merged():
    assert merges_of([TimeWindow(20, 30), TimeWindow(0, 5), TimeWindow(4, 9), TimeWindow(9, 10), TimeWindow(0, 5)]) == [
        ({TimeWindow(0, 5), TimeWindow(4, 9), TimeWindow(9, 10)}, TimeWindow(0, 10))
    ]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 8)), max_size=12))
def test_merged_windows_cover_the_same_times_and_touch_nothing_else(spans):
    windows = {TimeWindow(start, start + length) for start, length in spans}
    result = set(windows)
    for members, merged in merges_of(windows):
        assert len(members) > 1
        result = result - members | {merged}
    assert all(a == b or not a.intersects(b) for a in result for b in result)
    assert {t for w in windows for t in range(w.start, w.end)} == {t for w in result for t in range(w.start, w.end)}


@pytest.mark.parametrize("window", [TimeWindow(0, 5), CountWindow(3), GlobalWindow()])
def test_a_window_takes_attributes_of_its_user_and_stays_the_same_key(window):
    same = pickle.loads(pickle.dumps(window))
    window.label = "mine"
    assert window == same and hash(window) == hash(same) and not hasattr(same, "label")
    assert pickle.loads(pickle.dumps(window)).label == "mine"


def test_what_makes_up_a_window_cannot_be_set():
    window = TimeWindow(0, 5)
    with pytest.raises(AttributeError, match=r"TimeWindow.start cannot be set: .* make a new one with TimeWindow\("):
        window.start = 3
