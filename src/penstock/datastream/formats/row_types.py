"""The forms in which row formats take types."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from penstock.common.typeinfo import RowTypeInfo, TypeInformation


@runtime_checkable
class ColumnType(Protocol):
    """A type of PyFlink's tables, such as `DataTypes.INT()`, which PyFlink's formats take."""

    def type_info(self) -> TypeInformation:
        """The type of the values."""


def as_type_info(given: Any) -> Any:
    """The type of the values, if the type of a column is given; anything else as it is."""
    return given.type_info() if isinstance(given, ColumnType) else given


def check_row_type(where: str, row_type: object) -> RowTypeInfo:
    """The row type; TypeError for anything else."""
    row_type = as_type_info(row_type)
    if not isinstance(row_type, RowTypeInfo):
        raise TypeError(
            f"{where}: row_type must be a row type such as Types.ROW_NAMED(['a'], [Types.INT()]), got {row_type!r}"
        )
    return row_type
