"""sum, min and max in generated loops: an expression for tuples, which must give what the aggregation itself gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.types import Row
from penstock.datastream.fields import FieldAggregation
from penstock.runtime.element_copies import as_it_is
from penstock.runtime.generated_loop import LoopScope, Source, Unbuilt
from penstock.runtime.windowing.accumulation import Reducing

KINDS = ["sum", "min", "max", "min_by", "max_by"]


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Point:
    first: Any
    second: Any


class OwnTuple(tuple):
    pass


numbers = st.integers(-3, 3) | st.booleans() | st.floats(-2, 2) | st.just(2**70)
items = numbers | st.text(max_size=2) | st.none() | st.tuples(numbers)
elements = (
    st.lists(numbers, max_size=4).map(tuple)
    | st.lists(items, min_size=1, max_size=4).map(tuple)
    | st.lists(items, max_size=3)
    | st.lists(items, max_size=3).map(lambda values: Row(*values))
    | st.builds(Pair, items, items)
    | st.builds(Point, items, items)
    | st.lists(items, max_size=3).map(OwnTuple)
    | st.dictionaries(st.integers(0, 2), items, max_size=3)
    | items
)


def outcome(call):
    """What comes of it, with its type, or how it fails."""
    try:
        result = call()
    except Exception as failure:
        return type(failure)
    return type(result), repr(result)


def compiled(aggregation, inlines=True):
    scope = LoopScope(inlines)
    text = f"def reduced(held, value):\n    return {scope.call('f0', aggregation.reduce, 'held', 'value')}\n"
    return scope.compile(Source(text, "<test>"))


@settings(max_examples=1000)
@given(st.sampled_from(KINDS), st.integers(-2, 3) | st.sampled_from(["first", "second"]), elements, elements)
def test_the_expression_gives_what_the_aggregation_gives(kind, field, held, value):
    aggregation = FieldAggregation(kind, field)
    run = compiled(aggregation).run
    assert outcome(lambda: run(held, value)) == outcome(lambda: aggregation.reduce(held, value))


@settings(max_examples=300)
@given(st.sampled_from(KINDS), st.integers(0, 2), st.tuples(items, items, items), st.tuples(items, items))
def test_so_it_does_for_tuples_that_are_not_built_yet(kind, field, held, value):
    aggregation = FieldAggregation(kind, field)
    scope, lines = LoopScope(), ["def reduced(held, one, other):"]

    def build():
        lines.append("    value = (one, other)")
        return "value"

    expression = scope.call("f0", aggregation.reduce, "held", Unbuilt(("one", "other"), build))
    run = scope.compile(Source("\n".join([*lines, f"    return {expression}\n"]), "<test>")).run
    assert outcome(lambda: run(held, *value)) == outcome(lambda: aggregation.reduce(held, value))


@settings(max_examples=200)
@given(st.sampled_from(KINDS), st.integers(0, 1), st.lists(st.tuples(st.sampled_from("ab"), numbers, numbers)))
def test_windows_hold_the_same_with_inlining_on_and_off(kind, field, batch):
    keys, values = [key for key, *_ in batch], [tuple(rest) for _, *rest in batch]
    held = []
    for inlines in (True, False):
        panes: dict[Any, Any] = {}
        opened = Reducing(FieldAggregation(kind, field), as_it_is, inlines).add_all(panes, keys, values)
        held.append((opened, {key: (pane, repr(pane)) for key, pane in panes.items()}))
    assert held[0] == held[1]


@pytest.mark.parametrize("field", [0, 1, 15])
def test_it_is_not_called_for_tuples(field):
    scope = LoopScope()
    expression = scope.call("f0", FieldAggregation("sum", field).reduce, "held", "value")
    text = f"def reduced(held, value):\n    return {expression}\n"
    scope.locals["f0"] = None
    wide = tuple(range(17))
    assert scope.compile(Source(text, "<test>")).run(wide, wide)[field] == 2 * field


@pytest.mark.parametrize(("kind", "expected"), [("sum", (1, 6)), ("min", (1, 2)), ("max", (1, 4))])
def test_a_field_can_be_counted_from_the_end(kind, expected):
    assert FieldAggregation(kind, -1).reduce((1, 2), (3, 4)) == expected


def test_it_is_called_where_functions_are_not_inlined():
    assert not compiled(FieldAggregation("sum", 1), inlines=False).has_inlined
