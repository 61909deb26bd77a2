"""Accumulators by subtask add up to those of vertices and of the job."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.accumulators import DoubleCounter, IntCounter
from penstock.jobmaster.counted import Counted

REPORTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.dictionaries(st.sampled_from("abc"), st.integers(-5, 5)))
)


def values(accumulators: Any) -> dict[str, int]:
    return {name: each.get_local_value() for name, each in accumulators.items()}


@given(reports=REPORTS, later=REPORTS)
def test_sums_of_subtasks_vertices_and_job_agree(reports, later):
    counted = Counted()
    model: Counter[tuple[int, int, str]] = Counter()
    for vertex, subtask, amounts in reports:
        counted.take(vertex, subtask, {name: IntCounter(amount) for name, amount in amounts.items()})
        for name, amount in amounts.items():
            model[vertex, subtask, name] += amount
    then = counted.copy()
    for vertex, subtask, amounts in later:
        counted.take(vertex, subtask, {name: IntCounter(amount) for name, amount in amounts.items()})

    def expected(*at: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for (*where, name), amount in model.items():
            if tuple(where)[: len(at)] == at:
                found[name] = found.get(name, 0) + amount
        return found

    for _ in range(2):  # Asking changes nothing.
        assert values(then.of_all()) == expected()
        for vertex in range(3):
            assert values(then.of_vertex(vertex)) == expected(vertex)
            assert values(then.of_subtask(vertex, 1)) == expected(vertex, 1)


def test_two_kinds_under_one_name_are_refused():
    counted = Counted()
    counted.take(0, 0, {"n": IntCounter(1)})
    with pytest.raises(TypeError, match="'n' is IntCounter in one function and DoubleCounter in another"):
        counted.take(1, 0, {"n": DoubleCounter(1.0)})
