"""Functions of a row as people write them, made up at random, and rows for them."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from penstock.common import Row
from penstock.datastream.lowering.expressions import KIND_OF_TYPE, Column

NAMES = ["a", "b", "f", "g", "s", "t"]
TYPES = ["long", "integer", "double", "float", "string", "boolean"]
SCHEMA = "a bigint, b int, f double, g float, s string, t boolean"


def columns(is_nullable: bool = True) -> list[Column]:
    return [Column(at, each, KIND_OF_TYPE[each], is_nullable) for at, each in enumerate(TYPES)]


def named_row(values: tuple[Any, ...]) -> Row:
    row = Row(*values)
    row.set_field_names(NAMES)
    return row


# --- rows ------------------------------------------------------------------------------------------------------------

_EDGES = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
_longs = st.one_of(st.integers(-9, 9), st.sampled_from(_EDGES), st.integers(-(2**63), 2**63 - 1))
_ints = st.one_of(st.integers(-9, 9), st.integers(-(2**31), 2**31 - 1))
_doubles = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.1, -2.5, math.nan, math.inf, -math.inf, 2.0**53, 1e300, 5e-324]), st.floats()
)
_singles = st.floats(width=32)
_texts = st.one_of(st.sampled_from(["", "a", "ab", "b", "ü", "\U0001f600", "\ue000"]), st.text(max_size=4))

rows = st.tuples(*(st.one_of(st.none(), each) for each in (_longs, _ints, _doubles, _singles, _texts, st.booleans())))
complete_rows = st.tuples(_longs, _ints, _doubles, _singles, _texts, st.booleans())


# --- functions, as text ----------------------------------------------------------------------------------------------


def _joined(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda texts: pattern.format(*texts))


_whole_constants = st.one_of(st.integers(-9, 9), st.sampled_from(_EDGES)).map(lambda number: f"({number})")
_divisors = st.integers(1, 12).map(str)
_float_constants = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 3.0]), st.floats(allow_nan=False, allow_infinity=False))
_text_constants = st.one_of(st.sampled_from(["", "a", "'\\\"", "%", "ü"]), st.text(max_size=2)).map(repr)


def expressions(depth: int) -> dict[str, st.SearchStrategy[str]]:
    """By kind."""
    whole = st.one_of(st.sampled_from(["r.a", "r.b", 'r["a"]', "r[1]", "r[-5]"]), _whole_constants)
    number = st.one_of(st.sampled_from(["r.f", "r.g", "r[2]"]), _float_constants.map(lambda x: f"({x!r})"))
    text = st.one_of(st.just("r.s"), _text_constants)
    truth = st.sampled_from(["r.t", "(r.a is None)", "(r.s is not None)", "(r.f is None)", "(r.t == True)"])
    if depth == 0:
        return {"whole": whole, "number": number, "text": text, "truth": truth}
    inner = expressions(depth - 1)
    i, f, s, c = inner["whole"], inner["number"], inner["text"], inner["truth"]
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    return {
        "whole": st.one_of(
            whole,
            _joined("({} {} {})", i, st.sampled_from("+-*"), i),
            _joined("({} {} {})", i, st.sampled_from(["//", "%"]), _divisors),
            _joined("(-{})", i),
            _joined("abs({})", i),
            _joined("len({})", s),
            _joined("({} if {} else {})", i, c, i),
        ),
        "number": st.one_of(
            number,
            _joined("({} {} {})", f, st.sampled_from("+-*/"), st.one_of(f, i)),
            _joined("({} {} {})", i, st.sampled_from("+-*/"), f),
            _joined("({} / {})", i, i),
            _joined("(-{})", f),
            _joined("({} if {} else {})", f, c, f),
        ),
        "text": st.one_of(
            text,
            _joined("({} + {})", s, s),
            _joined("str({})", i),
            _joined("({} if {} else {})", s, c, s),
        ),
        "truth": st.one_of(
            truth,
            _joined("({} {} {})", i, signs, st.one_of(i, f)),
            _joined("({} {} {})", f, signs, st.one_of(i, f)),
            _joined("({} {} {})", s, signs, s),
            _joined("({} in {})", _text_constants, s),
            _joined("{}.{}({})", s, st.sampled_from(["startswith", "endswith"]), _text_constants),
            _joined("({} in (1, 2, {}))", i, _whole_constants),
            _joined("({} < {} <= {})", i, i, i),
            _joined("({} {} {})", c, st.sampled_from(["and", "or"]), c),
            _joined("(not {})", c),
        ),
    }  # fmt: skip


_by_kind = expressions(2)
_any = st.one_of(*_by_kind.values())
predicates = st.one_of(_by_kind["truth"], _by_kind["whole"], _by_kind["text"])
results = st.one_of(
    _any,
    st.just("r"),
    _joined("({}, {})", _any, _any),
    _joined("[{}, ({}, 1)]", _any, _any),
    _joined("Row({}, {})", _any, _any),
    _joined("(0 if r.a is None else r.a, {}, {})", _any, _any),
)


def function(text: str) -> Any:
    return eval(f"lambda r: {text}", {"Row": Row})
