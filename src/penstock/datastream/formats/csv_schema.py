"""What CSV files look like: their columns, separators and quotes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.datastream.formats.csv_values import LINE_DELIMITERS
from penstock.datastream.formats.row_types import ColumnType, as_type_info


@dataclass(frozen=True)
class CsvColumn:
    """A column; `array_separator` is set for columns that hold arrays."""

    name: str
    type_info: TypeInformation
    array_separator: str | None = None


@dataclass(frozen=True)
class CsvSchema:
    """Columns and characters of CSV files; made by `CsvSchema.builder()`.

    >>> CsvSchema.builder().add_string_column("name").add_number_column("age").set_column_separator(";").build().size()
    2
    """

    columns: tuple[CsvColumn, ...] = ()
    column_separator: str = ","
    array_element_separator: str | None = ";"
    escape_char: str | None = None
    quote_char: str | None = '"'
    line_separator: str = "\n"
    null_value: str | None = None
    any_property_name: str | None = None
    allows_comments: bool = False
    skips_first_data_row: bool = False
    has_strict_headers: bool = False
    uses_header: bool = False
    row_type: RowTypeInfo = field(init=False, compare=False)

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        object.__setattr__(self, "row_type", Types.ROW_NAMED(names, [column.type_info for column in self.columns]))

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Begin to describe a schema."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()


class CsvSchemaBuilder:
    """Collects columns, in order, and characters.

    `CsvSchema` has an example.
    """

    def __init__(self) -> None:
        self._columns: list[CsvColumn] = []
        self._settings = CsvSchema()

    def build(self) -> CsvSchema:
        """The finished schema."""
        return replace(self._settings, columns=tuple(self._columns))

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | ColumnType | None = None
    ) -> CsvSchemaBuilder:
        """A column of arrays, whose elements are strings unless said otherwise."""
        return self._add(CsvColumn(name, Types.OBJECT_ARRAY(as_type_info(element_type or Types.STRING())), separator))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """A column of `true` and `false`."""
        return self._add(CsvColumn(name, Types.BOOLEAN()))

    def add_number_column(self, name: str, number_type: TypeInformation | ColumnType | None = None) -> CsvSchemaBuilder:
        """A column of numbers, of type LONG unless said otherwise."""
        return self._add(CsvColumn(name, as_type_info(number_type or Types.LONG())))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """A column of text."""
        return self._add(CsvColumn(name, Types.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """The columns of another schema, after those added so far."""
        for column in schema.columns:
            self._add(column)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns added so far."""
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Skip lines that begin with `#`."""
        return self._with(allows_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Accept fields beyond the columns; they are left out."""
        return self._with(any_property_name=name)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Use the default separator of arrays, a semicolon."""
        return self._with(array_element_separator=None)

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Read the column at `index` as a whole instead of an array."""
        if not 0 <= index < len(self._columns):
            raise IndexError(f"CsvSchema: there is no column {index}; there are {len(self._columns)}")
        self._columns[index] = replace(self._columns[index], array_separator=None)
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """What separates the elements of arrays; a semicolon, unless set."""
        return self._with(array_element_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """What separates columns; a comma, unless set."""
        return self._with(column_separator=_single("column separator", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Escape nothing; the default."""
        return self._with(escape_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """What takes the special meaning off the next character; none, unless set."""
        return self._with(escape_char=_single("escape char", char))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""What ends a line when writing: `\n`, `\r\n` or `\r`; reading takes all three."""
        if separator not in LINE_DELIMITERS:
            raise ValueError(f"CsvSchema: line separator must be \\n, \\r\\n or \\r, got {separator!r}")
        return self._with(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """What stands for None.

        Unless set, None is written as an empty field, and an empty field is read as None; except in columns of text,
        bytes and arrays, where it is a value.
        """
        return self._with(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read quotes as plain characters, and write none; what would need quotes is refused."""
        return self._with(quote_char=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """What text with special characters is quoted with; a double quote, unless set."""
        return self._with(quote_char=_single("quote char", char))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Leave out the first row of each file, after the header if there is one."""
        return self._with(skips_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Fail if a file's header differs from the columns."""
        return self._with(has_strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Treat the first line of a file as its header."""
        return self._with(uses_header=use)

    def size(self) -> int:
        """The number of columns so far."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _add(self, column: CsvColumn) -> CsvSchemaBuilder:
        if any(present.name == column.name for present in self._columns):
            raise ValueError(f"CsvSchema: there is a column {column.name!r} already")
        if not isinstance(column.type_info, TypeInformation):
            raise TypeError(
                f"CsvSchema: column {column.name!r} needs a type such as Types.LONG(), got {column.type_info!r}"
            )
        self._columns.append(column)
        return self

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._settings = replace(self._settings, **changes)
        return self


def _single(what: str, char: str) -> str:
    if len(char) != 1:
        raise ValueError(f"CsvSchema: {what} must be a single character, got {char!r}")
    return char
