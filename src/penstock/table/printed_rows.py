"""Results of statements as Flink prints them: a frame of lines, and NULL as <NULL>."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from penstock.table import types as t
from penstock.table.types import DataType, RowType
from penstock.table.values.casts import text_function

NULL = "<NULL>"
MAX_COLUMN_WIDTH = 30
"""How wide a column is whose type does not say it (`table.display.max-column-width`)."""
_KINDS = ("+I", "-U", "+U", "-D")


def printed_table(
    rows: Iterable[tuple[int, Sequence[Any]]],
    row_type: RowType,
    zone: str,
    with_kind: bool,
    widths: Sequence[int] | None = None,
    null: str = NULL,
) -> Iterator[str]:
    """The lines of a table, as the rows come. Without widths, those of the types."""
    widths = widths_of_types(row_type) if widths is None else widths
    names = row_type.field_names()
    if with_kind:
        widths, names = [2, *widths], ["op", *names]
    frame = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    texts = texts_of_rows(row_type, zone, null)
    count = 0
    for kind, row in rows:
        if count == 0:
            yield from (frame, _line(names, widths), frame)
        cells = texts(row)
        yield _line([_KINDS[kind], *cells] if with_kind else cells, widths)
        count += 1
    if count == 0:
        yield "Empty set"
    else:
        yield frame
        yield f"{count} row{'' if count == 1 else 's'} in set"


def texts_of_rows(row_type: RowType, zone: str, null: str = NULL) -> Callable[[Sequence[Any]], list[str]]:
    """The function that gives the texts of a row's values."""
    columns = [_shown(data_type, zone) for data_type in row_type.field_types()]

    def texts(row: Sequence[Any]) -> list[str]:
        return [null if value is None else of(value) for of, value in zip(columns, row, strict=True)]

    return texts


def _shown(data_type: DataType, zone: str) -> Callable[[Any], str]:
    if isinstance(data_type, (t.BinaryType, t.VarBinaryType)):
        return lambda value: f"x'{bytes(value).hex()}'"
    return text_function(data_type, zone)


def widths_of_types(row_type: RowType) -> list[int]:
    """The widths of columns as their types have them: what comes later is not known yet."""
    return [max(len(NULL), display_width(field.name), _width_of_type(field.data_type)) for field in row_type]


def widths_of_rows(rows: Sequence[Sequence[Any]], row_type: RowType) -> list[int]:
    """The widths that rows need."""
    texts = texts_of_rows(row_type, "UTC", "")
    cells = [row_type.field_names(), *(texts(row) for row in rows)]
    return [max(map(display_width, column)) for column in zip(*cells, strict=True)]


def _width_of_type(data_type: DataType) -> int:
    match data_type:
        case t.BooleanType():
            return 5
        case t.TinyIntType():
            return 4
        case t.SmallIntType():
            return 6
        case t.IntType():
            return 11
        case t.BigIntType():
            return 20
        case t.DecimalType(precision=precision):
            return precision + 2
        case t.DateType():
            return 10
        case t.TimeType(precision=digits):
            return 8 + (digits + 1 if digits else 0)
        case t.TimestampType(precision=digits) | t.LocalZonedTimestampType(precision=digits):
            return 19 + (digits + 1 if digits else 0)
    return MAX_COLUMN_WIDTH


def display_width(text: str) -> int:
    """How many columns of a terminal a text takes: characters of East Asia take two."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "|" + "|".join(f" {_fitted(cell, width)} " for cell, width in zip(cells, widths, strict=True)) + "|"


def _fitted(cell: str, width: int) -> str:
    taken = display_width(cell)
    if taken <= width:
        return " " * (width - taken) + cell
    kept, left = [], width - 3
    for character in cell:
        left -= _character_width(character)
        if left < 0:
            break
        kept.append(character)
    cut = "".join(kept) + "..."
    return " " * (width - display_width(cut)) + cut
