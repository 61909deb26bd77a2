"""Nodes without state: projections, filters, unions, and rows repeated for grouping sets."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.codegen.compiler import CompiledCalc, compile_projection
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.rows import INSERT, RowTuple


def calc(at: Translation) -> TableStream:
    """SELECT and WHERE."""
    source = at.input
    function = compile_projection(
        at.node["projection"], at.node["condition"], source.row_type, at.context.expressions, source.is_changelog
    )
    return TableStream(at.on_rows(function), at.node.row_type, source.is_changelog)


@dataclass(frozen=True)
class Expansion:
    """Each row once for each projection."""

    projections: tuple[CompiledCalc, ...]

    def __call__(self, rows: list[RowTuple]) -> list[RowTuple]:
        made = [projection(rows) for projection in self.projections]
        return [row for group in zip(*made, strict=True) for row in group]


def expand(at: Translation) -> TableStream:
    """A row for each of the grouping sets."""
    source = at.input
    projections = [
        compile_projection(each, None, source.row_type, at.context.expressions, source.is_changelog)
        for each in at.node["projects"]
    ]
    return TableStream(at.on_rows(Expansion(tuple(projections))), at.node.row_type, source.is_changelog)


def exchange(at: Translation) -> TableStream:
    """The operator behind it partitions its input by itself."""
    return TableStream(at.input.stream, at.node.row_type, at.input.is_changelog)


def with_kinds(rows: list[RowTuple]) -> list[RowTuple]:
    """Rows of an edge without changes, for one with changes."""
    return [(*row, INSERT) for row in rows]


def union(at: Translation) -> TableStream:
    """UNION ALL. If one input has changes, all rows get a kind."""
    is_changelog = any(each.is_changelog for each in at.inputs)
    streams = []
    for number, each in enumerate(at.inputs):
        if is_changelog and not each.is_changelog:
            alone = Translation(at.env, at.context, at.node, (each,))
            streams.append(alone.on_rows(with_kinds, f"input-{number}"))
        else:
            streams.append(each.stream)
    first, *others = streams
    return TableStream(first.union(*others) if others else first, at.node.row_type, is_changelog)
