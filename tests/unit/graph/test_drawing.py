from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError
from penstock.graph.drawing import draw_svg, draw_text


def node(id: int, contents: str, parallelism: int = 1, inputs: tuple[tuple[int, str], ...] = ()) -> dict[str, Any]:
    predecessors = [{"id": source, "ship_strategy": strategy, "side": "second"} for source, strategy in inputs]
    return {
        "id": id, "type": contents, "pact": "Operator", "contents": contents,
        "parallelism": parallelism, "predecessors": predecessors,
    }  # fmt: skip


def plan(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": list(nodes)}


def test_chains_are_boxes_in_one_line_joined_by_the_ship_strategy():
    words = plan(
        node(1, "Source: Socket Stream"),
        node(2, "Flat Map", 1, ((1, "FORWARD"),)),
        node(4, "Window(5000)", 3, ((2, "HASH"),)),
        node(5, "Sink: Print", 3, ((4, "FORWARD"),)),
    )
    assert draw_text(words, [[1, 2], [4, 5]]) == "\n".join(
        [
            "┌─ parallelism 1 ───────┐",
            "│ Source: Socket Stream │",
            "│ → Flat Map            │",
            "└───────────┬───────────┘",
            "            │",
            "            ▼ HASH",
            "   ┌─ parallelism 3 ─┐",
            "   │ Window(5000)    │",
            "   │ → Sink: Print   │",
            "   └─────────────────┘",
        ]
    )


def test_branches_fork_from_one_output_and_a_union_has_one_arrow_for_each_input():
    diamond = plan(
        node(1, "Source"),
        node(2, "Evens", 2, ((1, "REBALANCE"),)),
        node(3, "Odds", 2, ((1, "REBALANCE"),)),
        node(4, "Sink", 1, ((2, "GLOBAL"), (3, "GLOBAL"))),
    )
    assert draw_text(diamond, [[1], [2], [3], [4]]) == "\n".join(
        [
            "             ┌─ parallelism 1 ─┐",
            "             │ Source          │",
            "             └────────┬────────┘",
            "          ┌───────────┴────────────┐",
            "          ▼ REBALANCE              ▼ REBALANCE",
            "┌─ parallelism 2 ───┐    ┌─ parallelism 2 ───┐",
            "│ Evens             │    │ Odds              │",
            "└─────────┬─────────┘    └─────────┬─────────┘",
            "          └──┐         ┌───────────┘",
            "             ▼ GLOBAL  ▼ GLOBAL",
            "            ┌─ parallelism 1 ──┐",
            "            │ Sink             │",
            "            └──────────────────┘",
        ]
    )


def test_nodes_outside_every_chain_get_their_own_box():
    drawn = draw_text(plan(node(1, "Source"), node(2, "Sink", 1, ((1, "REBALANCE"),))), [])
    assert drawn.count("┌─ parallelism 1") == 2


def test_output_from_the_middle_of_a_chain_names_its_operator():
    forked = plan(node(1, "Source"), node(2, "Sink: raw", 1, ((1, "FORWARD"),)), node(3, "Sum", 2, ((1, "HASH"),)))
    assert "▼ HASH from Source" in draw_text(forked, [[1, 2], [3]])


def test_fork_inside_a_chain_is_drawn_as_a_tree():
    forked = plan(
        node(1, "Source"),
        node(2, "Filter", 1, ((1, "FORWARD"),)),
        node(3, "Sink: a", 1, ((2, "FORWARD"),)),
        node(4, "Sink: b", 1, ((1, "FORWARD"),)),
    )
    lines = [line.strip("│ ").rstrip() for line in draw_text(forked, [[1, 2, 3, 4]]).splitlines()[1:-1]]
    assert lines == ["Source", "├ → Filter", "→ Sink: a", "└ → Sink: b"]


def test_long_descriptions_are_wrapped_and_cut():
    drawn = draw_text(plan(node(1, "Window(" + "very long description " * 20 + ")")), [[1]])
    assert max(map(len, drawn.splitlines())) <= 48 and len(drawn.splitlines()) == 5 and "…" in drawn


def test_empty_plan_draws_nothing():
    assert draw_text({"nodes": []}, []) == ""
    assert draw_svg({"nodes": []}, []).startswith("<svg ")


def test_cycle_is_refused():
    loop = plan(node(1, "a", 1, ((2, "FORWARD"),)), node(2, "b", 1, ((1, "FORWARD"),)))
    with pytest.raises(InvalidProgramError, match="the plan has a cycle"):
        draw_text(loop, [[1], [2]])


def test_svg_is_well_formed_and_escapes_what_users_wrote():
    drawn = draw_svg(plan(node(1, "Map <a & b>"), node(2, "Sink", 4, ((1, "HASH"),))), [[1], [2]])
    texts = [element.text for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["HASH", "parallelism 1", "Map <a & b>", "parallelism 4", "Sink"]
    assert "prefers-color-scheme: dark" in drawn


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    nodes = []
    for id in range(1, draw(st.integers(1, 9)) + 1):
        sources = draw(st.lists(st.integers(1, id - 1), unique=True, max_size=3)) if id > 1 else []
        strategies = st.sampled_from(["FORWARD", "HASH", "REBALANCE", "BROADCAST"])
        nodes.append(node(id, f"operator {id}", draw(st.integers(1, 4)), tuple((s, draw(strategies)) for s in sources)))
    return plan(*nodes)


@given(job=plans())
def test_any_job_shows_every_operator_and_every_arrow(job):
    chains = [[n["id"]] for n in job["nodes"]]
    drawn = draw_text(job, chains)
    arrows = [p["ship_strategy"] for n in job["nodes"] for p in n["predecessors"]]
    assert all(drawn.count(f" operator {n['id']} ") == 1 for n in job["nodes"])
    assert drawn.count("▼") == len(arrows)
    assert all(drawn.count(f"▼ {strategy}") == arrows.count(strategy) for strategy in set(arrows))
    ElementTree.fromstring(draw_svg(job, chains))
