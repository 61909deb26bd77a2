from __future__ import annotations

import doctest
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import accumulators
from penstock.datastream.accumulators import (
    Average,
    DoubleCounter,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
)

KINDS = [
    getattr(accumulators, name)
    for name in accumulators.__all__
    if name not in ("Accumulator", "SimpleAccumulator", "AverageAccumulator")
]


@pytest.mark.parametrize("kind", KINDS)
@given(values=st.lists(st.integers(-1000, 1000)), cut=st.integers(0, 50))
def test_merging_parts_is_the_same_as_adding_everything(kind, values, cut):
    whole, first, second = kind(), kind(), kind()
    for value in values:
        whole.add(value)
    for value in values[:cut]:
        first.add(value)
    for value in values[cut:]:
        second.add(value)
    first.merge(second)
    assert first.get_local_value() == pytest.approx(whole.get_local_value())


@pytest.mark.parametrize("kind", KINDS)
def test_reset_clone_and_pickle(kind):
    accumulator = kind()
    accumulator.add(3)
    clone, copy = accumulator.clone(), pickle.loads(pickle.dumps(accumulator))
    accumulator.reset_local()
    assert accumulator == kind() and clone == copy != accumulator


def test_results():
    average, histogram, everything = Average(), Histogram(), ListAccumulator()
    for value in (1, 2, 2):
        average.add(value)
        histogram.add(value)
        everything.add(value)
    assert average.get_local_value() == pytest.approx(5 / 3)
    assert histogram.get_local_value() == {1: 1, 2: 2}
    assert everything.get_local_value() == [1, 2, 2]
    assert (Average().get_local_value(), IntCounter(5).get_local_value(), DoubleCounter().get_local_value()) == (
        0,
        5,
        0,
    )
    assert IntMaximum().get_local_value() == -2147483648 and IntMinimum().get_local_value() == 2147483647


def test_different_kinds_do_not_merge():
    with pytest.raises(TypeError, match="cannot merge a LongCounter into a IntCounter"):
        IntCounter().merge(LongCounter())


def test_the_example_in_the_documentation_works():
    assert doctest.testmod(accumulators).failed == 0
