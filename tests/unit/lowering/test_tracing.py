"""A traced function gives what Python gives, or leaves the row to Python."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, reject, settings
from random_functions import NAMES, columns, complete_rows, function, named_row, predicates, results, rows
from spark_semantics import outcome

from penstock.common import Row, Types
from penstock.datastream.lowering.expressions import NotLowerable
from penstock.datastream.lowering.program import DROPPED, IN_PYTHON, LOWERED, program_of
from penstock.datastream.lowering.tracing import Tree, step_of, trace


def traced(*steps, is_nullable: bool = True) -> Tree:
    """Steps are ("map" or "filter", function)."""
    made = [step_of(each, kind == "filter", None) for kind, each in steps]
    return trace(columns(is_nullable), NAMES, made)


def lowerable(*steps, is_nullable: bool = True) -> Tree:
    """The tree of steps that Spark can compute; Hypothesis looks for others if it cannot, as with huge constants."""
    try:
        tree = traced(*steps, is_nullable=is_nullable)
        program_of(tree)
    except NotLowerable:
        reject()
    return tree


def in_python(steps: Sequence, values: tuple) -> tuple:
    """The verdict that Python would give, None where it raises, and the element."""
    element = named_row(values)
    try:
        for kind, each in steps:
            result = each(element)
            if kind == "filter" and not result:
                return DROPPED, None
            element = element if kind == "filter" else result
    except (TypeError, ZeroDivisionError, OverflowError, AttributeError):
        return None, None
    return LOWERED, element


def check(steps: Sequence, values: tuple, tree: Tree) -> None:
    verdict, element = outcome(tree, values)
    if verdict != IN_PYTHON:
        assert repr((verdict, element)) == repr(in_python(steps, values))


@settings(max_examples=300)
@given(predicates, results, rows)
def test_random_functions_agree_with_python(predicate, result, values):
    steps = [("filter", function(predicate)), ("map", function(result))]
    check(steps, values, lowerable(*steps))


@settings(max_examples=100)
@given(results, complete_rows)
@example(f"({2**62} + {2**62})", (0, 0, 0.0, 0.0, "", True))
def test_random_functions_agree_where_nothing_can_be_none(result, values):
    steps = [("map", function(result))]
    check(steps, values, lowerable(*steps, is_nullable=False))


def test_what_a_function_computes_in_vain_counts():
    steps = [("map", lambda r: (r.a + 1, r.s)), ("map", lambda t: t[1])]
    tree = traced(*steps)
    assert outcome(tree, (1, 1, 1.0, 1.0, "x", True)) == (LOWERED, "x")
    assert outcome(tree, (None, 1, 1.0, 1.0, "x", True))[0] == IN_PYTHON  # None + 1 raises.


def test_a_row_is_dropped_only_if_python_comes_as_far_as_the_filter():
    steps = [("map", lambda r: (r.a * 2, r.b)), ("filter", lambda t: t[1] > 0)]
    assert outcome(traced(*steps), (None, -1, 1.0, 1.0, "x", True))[0] == IN_PYTHON
    assert outcome(traced(*steps), (1, -1, 1.0, 1.0, "x", True))[0] == DROPPED


def test_none_is_tested_for_field_by_field():
    tree = traced(("map", lambda r: "none" if r.a is None else "odd" if r.a % 2 else "even"))
    assert [outcome(tree, (a, 0, 0.0, 0.0, "", True)) for a in (None, 3, 4)] == [
        (LOWERED, "none"),
        (LOWERED, "odd"),
        (LOWERED, "even"),
    ]


def test_declared_rows_have_their_names_in_the_next_function():
    declared = Types.ROW_NAMED(["n", "word"], [Types.LONG(), Types.STRING()])
    steps = [step_of(lambda r: (r.a, r.s), False, declared), step_of(lambda r: Row(r.word, r.n + 1), False, None)]
    tree = trace(columns(), NAMES, steps)
    assert outcome(tree, (41, 0, 0.0, 0.0, "x", True)) == (LOWERED, Row("x", 42))


LIMIT = 3
seen: list = []


def remembers(r):
    seen.append(r)
    return r


def loops(r):
    total = 0
    while total < 3:
        total += 1
    return total


def generates(r):
    yield r.a


def handles(r):
    try:
        return r.a + 1
    except TypeError:
        return 0


def stores(r):
    r.a = 1
    return r


class Callable:
    def __call__(self, r):
        return r.a


words = ["x"]


@pytest.mark.parametrize(
    "refused",
    [
        lambda r: r.a > LIMIT,
        lambda r: print(r.a),
        lambda r: round(r.f),
        lambda r: r.s.upper(),
        lambda r: f"{r.s}!",
        lambda r: "%s" % r.s,  # noqa: UP031 - as people write it
        lambda r: "{}".format(r.s),  # noqa: UP032
        lambda r: r.s in {"a", "b"},
        lambda r: r.s[0],
        lambda r: r.a // r.b,
        lambda r: r.a % -3,
        lambda r: r.a // 0,
        lambda r: r.f % 2,
        lambda r: r.f // 2,
        lambda r: r.a**2,
        lambda r: r.a << 1,
        lambda r: r.a & 1,
        lambda r: r.t + 1,
        lambda r: r.t == 1,
        lambda r: r.a == "1",
        lambda r: r.s * 2,
        lambda r: r.a is r.b,
        lambda r: r.t is True,
        lambda r: r.a == None,  # noqa: E711
        lambda r: r.a + 2**63,
        lambda r: r.f > 2**53 + 1,
        lambda r: r.missing,
        lambda r: r._values,
        lambda r: r.as_dict(),
        lambda r: {"a": r.a},
        lambda r: [x for x in r],
        lambda r: (r.a, lambda: 1),
        lambda r: hash(r.a),
        lambda r: (1, 2)[r.a],
        lambda r: r.a if r.t else r.s,
        lambda r: (r.a,) if r.t else r.a,
        lambda r: words[0] + r.s,
        lambda r, more=words: r.a,
        lambda r, *more: r.a,
        lambda: 1,
        remembers,
        loops,
        generates,
        handles,
        stores,
        Callable(),
        len,
    ],
)
def test_what_cannot_be_proven_stays_in_python(refused):
    with pytest.raises(NotLowerable):
        program_of(traced(("map", refused)))
    assert seen == []


def test_a_function_with_too_many_ways_through_it_stays_in_python():
    text = " + ".join(f"(1 if r.a > {n} else 0)" for n in range(12))
    with pytest.raises(NotLowerable, match="too many ways"):
        traced(("map", function(text)))


def test_an_expression_whose_text_would_explode_stays_in_python():
    text = "r.a"
    for _ in range(40):
        text = f"({text} // 2)"
    with pytest.raises(NotLowerable, match="too large"):
        traced(("map", function(text)))
