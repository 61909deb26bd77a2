"""Texts of times by a pattern: those that are remembered are those of the time itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.functions.date_patterns import _formatter, formatter

NANOS = st.integers(-(10**18), 4 * 10**18)
LETTERS = "yMdDHkhKmsSnaEeQ"


@given(first=NANOS, step=st.integers(-(10**14), 10**14), pattern=st.text(LETTERS + "-: ", min_size=1, max_size=6))
def test_remembered_texts_are_those_of_each_time(first: int, step: int, pattern: str):
    for nanos in (first, first + step):
        assert formatter(pattern)(nanos) == _formatter(pattern)(nanos)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [("yyyy-MM-dd", ["1969-12-31", "1970-01-01"]), ("HH:mm", ["23:59", "00:00"]), ("ss.SSS", ["59.999", "00.000"])],
)
def test_text_changes_with_its_smallest_unit(pattern: str, texts: list[str]):
    assert [formatter(pattern)(nanos) for nanos in (-1, 0)] == texts
