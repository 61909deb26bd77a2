"""Changelogs that are made complete or materialized, by hand-made plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from table_plans import collected, copy_plan

COLUMNS = {"id": "INT", "v": "STRING"}
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


@pytest.fixture
def plan_of(tmp_path: Path) -> Any:
    """A plan over changes, each of which is (kind, id, v), with a node between the scan and the sink."""

    def make(changes: list[Any], node: dict[str, Any] | None = None, **sink: Any) -> dict[str, Any]:
        messages = []
        for kind, number, value in changes:
            row = {"id": number, "v": value}
            is_there = kind in (INSERT, UPDATE_AFTER)
            messages.append({"op": "c", "after": row} if is_there else {"op": "d", "before": row})
        path = tmp_path / "changes"
        path.write_text("".join(json.dumps(each) + "\n" for each in messages), encoding="utf-8")
        source = {"connector": "filesystem", "format": "debezium-json", "path": str(path)}
        plan = copy_plan(source, {"connector": "collect"}, COLUMNS, key=["id"])
        plan["nodes"][1].update(sink)
        if node is not None:
            described = {"id": 9, "outputType": plan["nodes"][0]["outputType"], "description": node["type"], **node}
            plan["nodes"].insert(1, described)
            plan["edges"] = [{"source": 7, "target": 9}, {"source": 9, "target": 8}]
        return plan

    return make


CHANGES = [
    (INSERT, 1, "a"),
    (INSERT, 1, "b"),
    (INSERT, 1, "b"),
    (DELETE, 2, "x"),
    (DELETE, 1, "b"),
    (INSERT, 1, "c"),
]


@pytest.mark.parametrize("generates", [True, False])
def test_upserts_become_a_complete_changelog(plan_of: Any, generates: bool):
    node = {"type": "stream-exec-changelog-normalize_1", "uniqueKeys": [0], "generateUpdateBefore": generates}
    before = [(1, "a", UPDATE_BEFORE)] if generates else []
    assert collected(plan_of(CHANGES, node)) == [
        (1, "a", INSERT),
        *before,
        (1, "b", UPDATE_AFTER),
        (1, "b", DELETE),
        (1, "c", INSERT),
    ]


def test_a_row_that_no_longer_passes_the_filter_is_deleted(plan_of: Any):
    operands = [
        {"kind": "INPUT_REF", "inputIndex": 1, "type": "STRING"},
        {"kind": "LITERAL", "value": "b", "type": "STRING NOT NULL"},
    ]
    condition = {"kind": "CALL", "internalName": "$<>$1", "operands": operands, "type": "BOOLEAN"}
    node = {
        "type": "stream-exec-changelog-normalize_1",
        "uniqueKeys": [0],
        "generateUpdateBefore": True,
        "filterCondition": condition,
    }
    assert collected(plan_of(CHANGES, node)) == [(1, "a", INSERT), (1, "a", DELETE), (1, "c", INSERT)]


def test_rows_before_an_update_are_dropped(plan_of: Any, tmp_path: Path):
    plan = plan_of([], {"type": "stream-exec-drop-update-before_1"})
    change = {"op": "u", "before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}}
    (tmp_path / "changes").write_text(json.dumps(change) + "\n", encoding="utf-8")
    assert collected(plan) == [(1, "b", UPDATE_AFTER)]


def test_a_sink_sees_the_last_row_of_its_key_that_is_still_there(plan_of: Any):
    changes = [
        (INSERT, 1, "a"),
        (INSERT, 1, "b"),
        (DELETE, 1, "a"),
        (INSERT, 1, "c"),
        (DELETE, 1, "c"),
        (DELETE, 1, "zzz"),
        (DELETE, 1, "b"),
    ]
    assert collected(plan_of(changes, requireUpsertMaterialize=True)) == [
        (1, "a", INSERT),
        (1, "b", UPDATE_AFTER),
        (1, "c", UPDATE_AFTER),
        (1, "b", UPDATE_AFTER),
        (1, "b", DELETE),
    ]
