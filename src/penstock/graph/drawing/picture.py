"""What a drawing shows: boxes with operators and arrows between them, read from the plan and the chains."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

NodeId: TypeAlias = int | str
Plan: TypeAlias = Mapping[str, object]

MAX_LINE = 44
MAX_LINES_PER_OPERATOR = 3


@dataclass(frozen=True)
class Operator:
    """One operator of a box; `guide` is the branch drawn before it when its chain forks."""

    id: str
    lines: tuple[str, ...]
    guide: str = ""


@dataclass(frozen=True)
class Box:
    """One chain: operators that run in the same subtask, hence with one parallelism."""

    operators: tuple[Operator, ...]
    parallelism: int

    @property
    def parallelism_text(self) -> str:
        return f"parallelism {self.parallelism}"


@dataclass(frozen=True)
class Arrow:
    """Records going from box to box (by index); `operator` is the position in the source box they come from."""

    source: int
    target: int
    label: str
    operator: int


@dataclass(frozen=True)
class Picture:
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class _Node:
    id: str
    contents: str
    parallelism: int
    inputs: tuple[tuple[str, str], ...]  # (id, ship strategy)


def read_picture(plan: Plan, chains: Sequence[Sequence[NodeId]]) -> Picture:
    """The boxes and arrows of a plan; a node that is in no chain gets a box of its own."""
    nodes = {node.id: node for node in _nodes(plan)}
    grouped = [[str(i) for i in chain if str(i) in nodes] for chain in chains]
    chained = {i for chain in grouped for i in chain}
    grouped = [chain for chain in grouped if chain] + [[i] for i in nodes if i not in chained]
    order = {i: position for position, i in enumerate(nodes)}
    grouped.sort(key=lambda chain: min(order[i] for i in chain))
    boxes = tuple(_box([nodes[i] for i in sorted(chain, key=order.__getitem__)]) for chain in grouped)
    return Picture(boxes, tuple(_arrows(boxes, nodes)))


def _nodes(plan: Plan) -> Iterable[_Node]:
    raw_nodes = plan.get("nodes", [])
    assert isinstance(raw_nodes, list), "a plan's 'nodes' is a list"
    for raw in raw_nodes:
        inputs = tuple((str(p["id"]), str(p.get("ship_strategy", ""))) for p in raw.get("predecessors", []))
        name, text = str(raw.get("type") or ""), str(raw.get("contents") or raw.get("type") or raw["id"])
        if name not in text:  # The user gave it a name, which does not say what it does.
            text = f"{name}: {text}"
        yield _Node(str(raw["id"]), text, int(raw.get("parallelism", 1)), inputs)


def _box(chain: Sequence[_Node]) -> Box:
    members = {node.id for node in chain}
    children: dict[str, list[_Node]] = {node.id: [] for node in chain}
    heads: list[_Node] = []
    for node in chain:
        parent = next((source for source, _ in node.inputs if source in members), None)
        (heads if parent is None else children[parent]).append(node)
    operators: list[Operator] = []
    for head in heads:
        _add_operators(head, "", "", children, operators)
    return Box(tuple(operators), max(node.parallelism for node in chain))


def _add_operators(
    node: _Node, guide: str, rest: str, children: Mapping[str, Sequence[_Node]], into: list[Operator]
) -> None:
    """Add a node and what follows it in its chain; `rest` is the guide under the node's first line."""
    while True:
        lines = tuple(textwrap.wrap(node.contents, MAX_LINE, break_long_words=True)) or ("",)
        if len(lines) > MAX_LINES_PER_OPERATOR:
            lines = (*lines[: MAX_LINES_PER_OPERATOR - 1], lines[MAX_LINES_PER_OPERATOR - 1][: MAX_LINE - 1] + "…")
        into.append(Operator(node.id, lines, guide))
        following = children[node.id]
        if len(following) != 1:
            break
        node, guide = following[0], rest
    for child in following:
        is_last = child is following[-1]
        _add_operators(child, rest + ("└ " if is_last else "├ "), rest + ("  " if is_last else "│ "), children, into)


def _arrows(boxes: Sequence[Box], nodes: Mapping[str, _Node]) -> Iterable[Arrow]:
    place = {op.id: (b, o) for b, box in enumerate(boxes) for o, op in enumerate(box.operators)}
    labels: dict[tuple[int, int, int], list[str]] = {}
    for node in nodes.values():
        target, _ = place[node.id]
        for source_id, strategy in node.inputs:
            if source_id not in place or place[source_id][0] == target:
                continue
            seen = labels.setdefault((*place[source_id], target), [])
            if strategy not in seen:
                seen.append(strategy)
    for (source, operator, target), strategies in labels.items():
        yield Arrow(source, target, ", ".join(s for s in strategies if s), operator)
