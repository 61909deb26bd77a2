"""`pyflink.table.DataTypes`: types of columns, which CSV, Parquet and ORC formats of the DataStream API take too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.typeinfo import TypeInformation, Types

_PLAIN: dict[str, TypeInformation] = {
    "TINYINT": Types.BYTE(), "SMALLINT": Types.SHORT(), "INT": Types.INT(), "BIGINT": Types.LONG(),
    "FLOAT": Types.FLOAT(), "DOUBLE": Types.DOUBLE(), "BOOLEAN": Types.BOOLEAN(), "DECIMAL": Types.BIG_DEC(),
    "DATE": Types.SQL_DATE(), "TIME": Types.SQL_TIME(), "TIMESTAMP": Types.SQL_TIMESTAMP(),
    "TIMESTAMP_LTZ": Types.SQL_TIMESTAMP(), "STRING": Types.STRING(), "VARCHAR": Types.STRING(),
    "CHAR": Types.STRING(), "BYTES": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "BINARY": Types.PRIMITIVE_ARRAY(Types.BYTE()), "VARBINARY": Types.PRIMITIVE_ARRAY(Types.BYTE()),
}  # fmt: skip


@dataclass(frozen=True)
class DataType:
    """The type of a column, as `DataTypes` makes it."""

    name: str
    parameters: tuple[int, ...] = ()
    """Lengths and digits; not part of the values' type."""
    values: TypeInformation | None = None
    """The type of the values, for a type that is made of others."""

    def not_null(self) -> DataType:
        return self

    def nullable(self) -> DataType:
        return self

    def type_info(self) -> TypeInformation:
        """What formats and generated streams declare their values as."""
        return _PLAIN[self.name] if self.values is None else self.values


@dataclass(frozen=True)
class NamedField:
    """A field of a row: `DataTypes.FIELD("id", DataTypes.INT())`."""

    name: str
    data_type: DataType


def _row(row_fields: Sequence[NamedField] = (), nullable: bool = True) -> DataType:
    names, types = [each.name for each in row_fields], [each.data_type.type_info() for each in row_fields]
    return DataType("ROW", values=Types.ROW_NAMED(names, types))


def _field(name: str, data_type: DataType, description: str | None = None) -> NamedField:
    return NamedField(name, data_type)


def _array(element_type: DataType, nullable: bool = True) -> DataType:
    return DataType("ARRAY", values=Types.OBJECT_ARRAY(element_type.type_info()))


def _map(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:
    return DataType("MAP", values=Types.MAP(key_type.type_info(), value_type.type_info()))


_COMPOSED: dict[str, Callable[..., Any]] = {"ROW": _row, "FIELD": _field, "ARRAY": _array, "MAP": _map}


class _DataTypes(type):
    def __getattr__(cls, name: str) -> Any:
        if name in _COMPOSED:
            return _COMPOSED[name]
        if name in _PLAIN:
            return lambda *parameters, **_: DataType(name, tuple(each for each in parameters if type(each) is int))
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedFeatureError(
            f"DataTypes.{name}: there are {', '.join((*_PLAIN, *_COMPOSED))}, for the columns of files and of "
            f"generated data"
        )


class DataTypes(metaclass=_DataTypes):
    """Types of columns: `DataTypes.INT()`, `DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT())])` and so on."""
