"""Table functions: each row with the rows that they make of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.table.codegen.compiler import ExpressionContext
from penstock.table.logical_types import row_type_of
from penstock.table.operators.correlate import CorrelateFunction

INPUT = row_type_of("ROW<`id` INT, `text` STRING, `m` MAP<STRING, INT>>")


def words(text: str | None) -> Iterator[tuple[str, int]]:
    for word in (text or "").split():
        yield word, len(word)


CONTEXT = ExpressionContext(functions={"words": words})
CALL = {
    "kind": "CALL",
    "systemName": "words",
    "operands": [{"kind": "INPUT_REF", "inputIndex": 1, "type": "STRING"}],
    "type": "ROW<`word` STRING, `length` INT>",
}
LONG = {
    "kind": "CALL",
    "internalName": "$>$1",
    "operands": [
        {"kind": "INPUT_REF", "inputIndex": 1, "type": "INT"},
        {"kind": "LITERAL", "value": 2, "type": "INT NOT NULL"},
    ],
    "type": "BOOLEAN",
}
ROWS: list[Any] = [(1, "to be", None), (2, None, {}), (3, "question", {"a": 1, "b": None})]


@pytest.mark.parametrize(
    ("condition", "is_left", "expected"),
    [
        (None, False, [(1, "to", 2), (1, "be", 2), (3, "question", 8)]),
        (None, True, [(1, "to", 2), (1, "be", 2), (2, None, None), (3, "question", 8)]),
        (LONG, False, [(3, "question", 8)]),
        (LONG, True, [(1, None, None), (2, None, None), (3, "question", 8)]),
    ],
)
def test_rows_of_a_users_function(condition: Any, is_left: bool, expected: Any):
    function = pickle.loads(pickle.dumps(CorrelateFunction(CALL, condition, is_left, INPUT, CONTEXT, False)))
    assert [(row[0], row[3], row[4]) for row in function(ROWS)] == expected


def test_kinds_stay_at_the_end():
    function = CorrelateFunction(CALL, None, False, INPUT, CONTEXT, True)
    assert function([(*ROWS[2], 3)]) == [(*ROWS[2], "question", 8, 3)]


def test_the_entries_of_a_map():
    operand = {"kind": "INPUT_REF", "inputIndex": 2, "type": "MAP<STRING, INT>"}
    call = {"kind": "CALL", "internalName": "$UNNEST_ROWS$1", "operands": [operand], "type": "ROW<`k` STRING, `v` INT>"}
    rows = CorrelateFunction(call, None, True, INPUT, CONTEXT, False)(ROWS)
    assert [(row[0], *row[3:]) for row in rows] == [(1, None, None), (2, None, None), (3, "a", 1), (3, "b", None)]
