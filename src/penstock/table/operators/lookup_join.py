"""Joins with rows that are looked up in another system when a row arrives."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.connectors.jdbc.databases import database_of
from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions
from penstock.datastream.connectors.jdbc.writer import NoConnectionError, connect
from penstock.datastream.functions import ProcessFunction, RuntimeContext
from penstock.table.codegen.compiler import CompiledCalc, CompiledScalar
from penstock.table.codegen.rex import literal_value
from penstock.table.connectors.options import Options
from penstock.table.connectors.sources import connection_options, database_converter
from penstock.table.connectors.tables import TableSchema
from penstock.table.durations import duration_ms
from penstock.table.logical_types import external_converter, parse_type
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.scan import resolved_table
from penstock.table.rows import RowTuple
from penstock.table.types import RowType


@dataclass(frozen=True)
class CacheOptions:
    """How much is kept of what was looked up, and how long. No rows means no cache."""

    max_rows: int = 0
    after_write_ms: int = 0
    after_access_ms: int = 0
    keeps_missing: bool = True

    @staticmethod
    def of(options: Options) -> CacheOptions:
        """The options `lookup.partial-cache.*`, or the older `lookup.cache.max-rows` and `lookup.cache.ttl`."""
        kind = (options.get("lookup.cache") or "NONE").upper()
        if kind == "FULL":
            raise UnsupportedFeatureError(f"{options.owner}: 'lookup.cache' FULL is not supported; PARTIAL is")
        rows = options.whole("lookup.partial-cache.max-rows") or options.whole("lookup.cache.max-rows")
        is_old = options.get("lookup.cache.max-rows") is not None
        if kind == "NONE" and not is_old:
            return CacheOptions()
        written = options.get("lookup.partial-cache.expire-after-write") or options.get("lookup.cache.ttl") or "0 ms"
        accessed = options.get("lookup.partial-cache.expire-after-access") or "0 ms"
        keeps_missing = options.flag("lookup.partial-cache.cache-missing-key", True)
        return CacheOptions(rows or 10_000, duration_ms(written), duration_ms(accessed), keeps_missing)


class LookupCache:
    """The rows of the keys that were asked for last."""

    def __init__(self, options: CacheOptions, clock: Callable[[], int]) -> None:
        self.options = options
        self.clock = clock
        self.kept: OrderedDict[RowTuple, tuple[int, int, list[RowTuple]]] = OrderedDict()

    def get(self, key: RowTuple) -> list[RowTuple] | None:
        entry = self.kept.get(key)
        if entry is None:
            return None
        written, accessed, rows = entry
        now, options = self.clock(), self.options
        is_old = options.after_write_ms and now - written >= options.after_write_ms
        is_idle = options.after_access_ms and now - accessed >= options.after_access_ms
        if is_old or is_idle:
            del self.kept[key]
            return None
        self.kept[key] = written, now, rows
        self.kept.move_to_end(key)
        return rows

    def put(self, key: RowTuple, rows: list[RowTuple]) -> None:
        if self.options.max_rows <= 0 or (not rows and not self.options.keeps_missing):
            return
        now = self.clock()
        self.kept[key] = now, now, rows
        self.kept.move_to_end(key)
        while len(self.kept) > self.options.max_rows:
            self.kept.popitem(last=False)


class JdbcLookup:
    """Looks rows up by the equality of some columns. A lost connection is opened again."""

    def __init__(
        self, connection: JdbcConnectionOptions, table: str, row_type: RowType, keys: tuple[int, ...], zone: str,
        max_retries: int,
    ) -> None:  # fmt: skip
        self.connection_options = connection
        self.row_type = row_type
        self.max_retries = max_retries
        names = row_type.field_names()
        where = " AND ".join(f"{names[key]} = ?" for key in keys)
        self.sql = f"SELECT {', '.join(names)} FROM {table} WHERE {where}"
        self.keys = keys
        self.zone = zone
        self.connection: Any = None

    def open(self) -> None:
        self.database = database_of(self.connection_options.db_url)
        self.library = self.database.library()
        self.statement = self.database.statement(self.sql)
        self.convert = database_converter(self.row_type, self.zone)
        types = self.row_type.field_types()
        self.outward = [external_converter(types[key], self.zone) for key in self.keys]

    def rows(self, key: RowTuple) -> list[RowTuple]:
        values = [value if f is None else f(value) for f, value in zip(self.outward, key, strict=True)]
        for attempt in range(self.max_retries + 1):
            try:
                if self.connection is None:
                    self.connection = connect(self.connection_options)
                cursor = self.connection.cursor()
                cursor.execute(self.statement, values)
                found = [self.convert(each) for each in cursor.fetchall()]
                self.connection.commit()  # Else a database would show the same state for ever.
                return found
            except (self.library.OperationalError, self.library.InterfaceError, NoConnectionError):
                self.close()
                if attempt == self.max_retries:
                    raise
                time.sleep(attempt + 1)
        return []

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class LookupJoinFunction(ProcessFunction):
    """Each row with the rows that its key finds. A key with NULL finds none."""

    def __init__(
        self,
        lookup: JdbcLookup,
        key_parts: tuple[tuple[bool, Any], ...],
        cache: CacheOptions,
        before: CompiledScalar | None,
        temporal: CompiledCalc | None,
        condition: CompiledScalar | None,
        padding: RowTuple | None,
        is_changelog: bool,
    ) -> None:
        self.lookup = lookup
        self.key_parts = key_parts
        self.cache_options = cache
        self.before = before
        self.temporal = temporal
        self.condition = condition
        self.padding = padding
        self.is_changelog = is_changelog

    def open(self, runtime_context: RuntimeContext) -> None:
        self.lookup.open()
        self.cache = LookupCache(self.cache_options, lambda: time.monotonic_ns() // 1_000_000)

    def close(self) -> None:
        self.lookup.close()

    def found(self, row: RowTuple) -> list[RowTuple]:
        key = tuple([row[part] if is_field else part for is_field, part in self.key_parts])
        if None in key or (self.before is not None and self.before(row) is not True):
            return []
        rows = self.cache.get(key)
        if rows is None:
            rows = self.lookup.rows(key)
            if self.temporal is not None:
                rows = self.temporal(rows)
            self.cache.put(key, rows)
        return rows

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        left, kind = (value[:-1], value[-1:]) if self.is_changelog else (value, ())
        has_matched = False
        for right in self.found(left):
            if self.condition is None or self.condition((*left, *right)) is True:
                has_matched = True
                yield (*left, *right, *kind)
        if not has_matched and self.padding is not None:
            yield (*left, *self.padding, *kind)


def _key_parts(keys: Any) -> tuple[tuple[int, ...], tuple[tuple[bool, Any], ...]]:
    """The columns to look up by; for each, where its value is: (True, a column of the row) or (False, a constant)."""
    columns, parts = [], []
    for column, key in sorted(keys.items(), key=lambda item: int(item[0])):
        columns.append(int(column))
        if key["type"] == "FieldRef":
            parts.append((True, key["index"]))
        else:
            literal = key["literal"]
            parts.append((False, literal_value(literal.get("value"), parse_type(literal["type"]))))
    return tuple(columns), tuple(parts)


def lookup_join(at: Translation) -> TableStream:
    node, source = at.node, at.input
    temporal = node["temporalTable"]
    description = temporal.get("lookupTableSource")
    if description is None:
        raise node.unsupported("a lookup in a table that is no source")
    table = resolved_table(at, description)
    connector = table["options"].get("connector", "")
    options = Options(table["options"], f"table {description['table'].get('identifier')} with connector {connector!r}")
    if connector != "jdbc":
        raise UnsupportedFeatureError(f"{options.owner}: rows cannot be looked up in it; they can with 'jdbc'")
    if node["joinType"] not in ("INNER", "LEFT"):
        raise node.unsupported(f"a lookup join of type {node['joinType']}")
    columns = TableSchema.of(table).physical
    for ability in description.get("abilities") or ():
        if ability["type"] != "ProjectPushDown":
            raise node.unsupported(f"the push-down {ability['type']} into a lookup")
        columns = RowType([columns.fields[each[0]] for each in ability["projectedFields"]])
    keys, parts = _key_parts(node["lookupKeys"])
    context = at.context.expressions
    retries = options.whole("lookup.max-retries", 3) or 0
    lookup = JdbcLookup(
        connection_options(options), options.required("table-name"), columns, keys, at.context.time_zone, retries
    )
    projection, condition = node.get("projectionOnTemporalTable"), node.get("filterOnTemporalTable")
    of_table = None
    if projection is not None or condition is not None:
        of_table = CompiledCalc(projection, condition, columns, context)
    width = len(columns) if projection is None else len(projection)
    joined = RowType([*source.row_type.fields, *node.row_type.fields[len(source.row_type) :]])
    before, after = node.get("preFilterCondition"), node.get("joinCondition")
    function = LookupJoinFunction(
        lookup,
        parts,
        CacheOptions.of(options),
        None if before is None else CompiledScalar(before, source.row_type, context),
        of_table,
        None if after is None else CompiledScalar(after, joined, context),
        (None,) * width if node["joinType"] == "LEFT" else None,
        source.is_changelog,
    )
    return at.then(source.stream.process(function), source.is_changelog)
