"""A table by its connector, columns and options, as CREATE TABLE has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.config_options import ConfigOption
from penstock.table.schema import Schema
from penstock.table.types import quoted

__all__ = ["TableDescriptor", "FormatDescriptor"]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _key(key: str | ConfigOption[Any]) -> str:
    return key.key if isinstance(key, ConfigOption) else key


def _value(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


class _FormatBuilder:
    """Collects the options of a format."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._options: dict[str, str] = {}

    def option(self, key: str | ConfigOption[Any], value: Any) -> _FormatBuilder:
        """Set an option of the format, by its name without the format's."""
        self._options[_key(key)] = _value(value)
        return self

    def build(self) -> FormatDescriptor:
        """The format."""
        return FormatDescriptor(self._name, self._options)


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options.

    >>> FormatDescriptor.for_format("json").option("ignore-parse-errors", "true").build().get_options()
    {'ignore-parse-errors': 'true'}
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    Builder = _FormatBuilder

    @staticmethod
    def for_format(format: str) -> _FormatBuilder:
        """A builder for a format, such as `json`."""
        return _FormatBuilder(format)

    def get_format(self) -> str:
        """The name of the format."""
        return self.format

    def get_options(self) -> dict[str, str]:
        """The options of the format."""
        return dict(self.options)

    def __str__(self) -> str:
        return f"{self.format}[{dict(self.options)}]"

    def __hash__(self) -> int:
        return hash((self.format, tuple(sorted(self.options.items()))))


class _DescriptorBuilder:
    """Collects what a table has; `build` gives its descriptor."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        self._descriptor = descriptor

    def schema(self, schema: Schema) -> _DescriptorBuilder:
        """The columns of the table. A sink for a whole table may leave them out: it has those of its query."""
        self._descriptor = replace(self._descriptor, table_schema=schema)
        return self

    def option(self, key: str | ConfigOption[Any], value: Any) -> _DescriptorBuilder:
        """Set an option of the connector."""
        options = {**self._descriptor.options, _key(key): _value(value)}
        self._descriptor = replace(self._descriptor, options=options)
        return self

    def format(
        self, format: str | FormatDescriptor, format_option: ConfigOption[str] | None = None
    ) -> _DescriptorBuilder:
        """The format of the records, and its options; `format_option` says of what: `value.format` for example."""
        described = FormatDescriptor(format) if isinstance(format, str) else format
        key = "format" if format_option is None else _key(format_option)
        prefix = key.removesuffix("format") + described.format
        self.option(key, described.format)
        for name, value in described.options.items():
            self.option(f"{prefix}.{name}", value)
        return self

    def partitioned_by(self, *partition_keys: str) -> _DescriptorBuilder:
        """The columns by which files are in folders."""
        self._descriptor = replace(self._descriptor, partition_keys=partition_keys)
        return self

    def comment(self, comment: str) -> _DescriptorBuilder:
        """A text about the table."""
        self._descriptor = replace(self._descriptor, text=comment)
        return self

    def build(self) -> TableDescriptor:
        """The descriptor."""
        return self._descriptor


@dataclass(frozen=True)
class TableDescriptor:
    """A table by its connector, columns and options.

    >>> schema = Schema.new_builder().column("n", "INT").build()
    >>> numbers = TableDescriptor.for_connector("datagen").schema(schema).option("number-of-rows", 3).build()
    >>> print(numbers.as_sql("numbers", "TEMPORARY TABLE"))
    CREATE TEMPORARY TABLE numbers (`n` INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')
    """

    options: Mapping[str, str] = field(default_factory=dict)
    table_schema: Schema | None = None
    partition_keys: tuple[str, ...] = ()
    text: str | None = None

    Builder = _DescriptorBuilder

    @staticmethod
    def for_connector(connector: str) -> _DescriptorBuilder:
        """A builder for a table of this connector."""
        return _DescriptorBuilder(TableDescriptor({"connector": connector}))

    def get_schema(self) -> Schema | None:
        """The columns; None if they are those of the query that is inserted."""
        return self.table_schema

    def get_options(self) -> dict[str, str]:
        """The options, with the connector and the format."""
        return dict(self.options)

    def get_partition_keys(self) -> list[str]:
        """The columns by which files are in folders."""
        return list(self.partition_keys)

    def get_comment(self) -> str | None:
        """The text about the table."""
        return self.text

    def as_sql(self, path: str, what: str = "TABLE") -> str:
        """The statement that creates the table."""
        parts = [] if self.table_schema is None else self.table_schema.parts_as_sql()
        columns = f" ({', '.join(parts)})" if parts else ""
        comment = "" if self.text is None else f" COMMENT {_text(self.text)}"
        keys = f" PARTITIONED BY ({', '.join(map(quoted, self.partition_keys))})" if self.partition_keys else ""
        options = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in self.options.items())
        return f"CREATE {what} {path}{columns}{comment}{keys} WITH ({options})"

    def __str__(self) -> str:
        schema = "" if self.table_schema is None else str(self.table_schema)
        options = ",\n  ".join(f"{_text(key)} = {_text(value)}" for key, value in self.options.items())
        return f"{schema}\nWITH (\n  {options}\n)"

    def __hash__(self) -> int:
        return hash((self.table_schema, tuple(sorted(self.options.items())), self.partition_keys, self.text))
