"""The types of columns as types of streams: for streams of tables, and for formats of files."""

from __future__ import annotations

from penstock.common.typeinfo import TypeInformation, Types
from penstock.table import types as t
from penstock.table.rows import is_hashable
from penstock.table.types import DataType, RowType


def type_info_of(data_type: DataType) -> TypeInformation:
    """What streams and formats declare values of this type as."""
    match data_type:
        case RowType():
            return Types.ROW_NAMED(data_type.field_names(), [type_info_of(each) for each in data_type.field_types()])
        case t.ArrayType(element_type=element):
            return Types.OBJECT_ARRAY(type_info_of(element))
        case t.MapType(key_type=key, value_type=value):
            return Types.MAP(type_info_of(key), type_info_of(value))
        case t.MultisetType(element_type=element):
            return Types.MAP(type_info_of(element), Types.INT())
        case t.BinaryType() | t.VarBinaryType():
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        case t.CharType() | t.VarCharType():
            return Types.STRING()
    return _SIMPLE.get(type(data_type), Types.PICKLED_BYTE_ARRAY())


class InternalTypeInfo(TypeInformation):
    """Rows inside a job of tables, and lists of them, if none of their columns can change: nobody copies them."""

    has_only_immutable_values = True

    def __repr__(self) -> str:
        return "InternalTypeInfo()"


def internal_type_info(row_type: RowType) -> TypeInformation | None:
    """None if a function of the user could change a value, such as an array."""
    return InternalTypeInfo() if is_hashable(row_type) else None


_SIMPLE: dict[type[DataType], TypeInformation] = {
    t.BooleanType: Types.BOOLEAN(),
    t.TinyIntType: Types.BYTE(),
    t.SmallIntType: Types.SHORT(),
    t.IntType: Types.INT(),
    t.BigIntType: Types.LONG(),
    t.FloatType: Types.FLOAT(),
    t.DoubleType: Types.DOUBLE(),
    t.DecimalType: Types.BIG_DEC(),
    t.DateType: Types.SQL_DATE(),
    t.TimeType: Types.SQL_TIME(),
    t.TimestampType: Types.SQL_TIMESTAMP(),
    t.LocalZonedTimestampType: Types.SQL_TIMESTAMP(),
}
