"""Lists of numbers as arrays: only if they are numbers of one kind, and then the very same."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.state.number_columns import column_of_floats, column_of_ints


class Colour(IntEnum):
    RED = 1


LIMITS = [-(1 << 63) - 1, -(1 << 63), -(1 << 31) - 1, -(1 << 31), -1, 0, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63]
ints = st.one_of(st.sampled_from(LIMITS), st.integers(-300, 300))
others = st.sampled_from(
    [True, Colour.RED, np.int64(1), np.float64(1), None, "i", b"iiii", (1,), [1], {1: 1}, 1j, object()]
)


@given(st.one_of(st.lists(ints), st.lists(st.one_of(ints, ints, ints, st.floats(), others))))
def test_a_list_of_ints_is_a_column_if_all_of_them_fit(values):
    column = column_of_ints(values)
    are_ints = bool(values) and all(type(each) is int and -(1 << 63) <= each < 1 << 63 for each in values)
    assert (column is not None) == are_ints
    if column is not None:
        assert column.dtype == np.int64 and column.tolist() == values


@given(st.one_of(st.lists(st.floats()), st.lists(st.one_of(st.floats(), st.floats(), ints, others))))
def test_a_list_of_floats_is_a_column_of_the_same_bits(values):
    column = column_of_floats(values)
    assert (column is not None) == (bool(values) and all(type(each) is float for each in values))
    if column is not None:
        assert column.tobytes() == np.array(values, np.float64).tobytes()


@pytest.mark.parametrize("column", [column_of_ints, column_of_floats])
def test_nothing_is_no_column(column):
    assert column([]) is None
