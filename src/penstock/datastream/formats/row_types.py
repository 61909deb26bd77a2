"""The check that every row format makes."""

from __future__ import annotations

from penstock.common.typeinfo import RowTypeInfo


def check_row_type(where: str, row_type: object) -> RowTypeInfo:
    """The row type itself; TypeError for anything else."""
    if not isinstance(row_type, RowTypeInfo):
        raise TypeError(
            f"{where}: row_type must be a row type such as Types.ROW_NAMED(['a'], [Types.INT()]), got {row_type!r}"
        )
    return row_type
