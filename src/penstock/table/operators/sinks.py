"""Where rows go: tables, or streams that others take on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.datastream.data_stream import DataStream
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.graph import descriptions as d
from penstock.table.connectors import kafka
from penstock.table.connectors import sinks as connectors
from penstock.table.connectors.options import Options
from penstock.table.connectors.tables import SinkTable, TableSchema
from penstock.table.operators.plan import TableStream, Translation, short_name
from penstock.table.operators.scan import STREAM, resolved_table
from penstock.table.operators.states import value_state
from penstock.table.rows import (
    DELETE,
    INSERT,
    NANOS_PER_MILLI,
    UPDATE_AFTER,
    KeyOf,
    RowTuple,
    is_accumulate,
)
from penstock.table.types import RowType

SINKS: dict[str, connectors.SinkMaker] = {
    "print": connectors.print_rows,
    "blackhole": connectors.blackhole,
    "filesystem": connectors.filesystem,
    "jdbc": connectors.jdbc,
    "kafka": kafka.sink,
    "upsert-kafka": kafka.sink,
}
COLLECT = "collect"
_ENFORCER = "table.exec.sink.not-null-enforcer"


@dataclass(frozen=True)
class TableSink:
    """A sink of the plan. `stream` is its rows if nothing is attached to them yet, else None."""

    identifier: str
    connector: str
    stream: DataStream | None
    row_type: RowType
    is_changelog: bool
    upsert_key: tuple[int, ...] | None


@dataclass(frozen=True)
class NotNullEnforcer:
    """Fails, or drops the row, where a column that is NOT NULL has no value."""

    columns: tuple[tuple[int, str], ...]
    drops: bool

    def __call__(self, rows: list[RowTuple]) -> list[RowTuple]:
        return [row for row in rows if self.passes(row)]

    def passes(self, row: RowTuple) -> bool:
        for column, name in self.columns:
            if row[column] is None:
                if self.drops:
                    return False
                raise InvalidProgramError(
                    f"Column '{name}' is NOT NULL, however, a null value is being written into it. You can set job "
                    f"configuration '{_ENFORCER}'='DROP' to suppress this exception and drop such records silently."
                )
        return True


@dataclass(frozen=True)
class RowTimes:
    """The timestamps of rows, from the column that is their event time."""

    column: int

    def __call__(self, rows: list[RowTuple]) -> list[int | None]:
        column = self.column
        return [None if row[column] is None else row[column] // NANOS_PER_MILLI for row in rows]


class MaterializeFunction(KeyedProcessFunction):
    """Keeps all rows of the sink's key, so that what is written is always the last one that is still there."""

    def __init__(self, ttl_ms: int) -> None:
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "sinkMaterializeState", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = value[:-1], value[-1]
        rows = list(self.state.value() or ())
        if is_accumulate(kind):
            rows.append(row)
            self.state.update(rows)
            yield (*row, INSERT if len(rows) == 1 else UPDATE_AFTER)
            return
        if row not in rows:
            return
        last = len(rows) - 1 - rows[::-1].index(row)
        was_shown = last == len(rows) - 1
        del rows[last]
        if not rows:
            self.state.clear()
            yield (*row, DELETE)
            return
        self.state.update(rows)
        if was_shown:
            yield (*rows[-1], UPDATE_AFTER)


def sink(at: Translation) -> TableSink:
    node, source = at.node, at.input
    description = node["dynamicTableSink"]
    table = resolved_table(at, description)
    identifier = str(description["table"].get("identifier", "*anonymous*"))
    connector = table["options"].get("connector", "")
    options = Options(table["options"], f"table {identifier} with connector {connector!r}")
    schema = TableSchema.of(table)
    checked = _enforced(at, source, schema)
    if node.get("requireUpsertMaterialize"):
        checked = _materialized(at, checked, schema)
    upsert_key = node.get("inputUpsertKey")
    key = None if upsert_key is None else tuple(upsert_key)
    if connector in (COLLECT, STREAM):
        return TableSink(
            identifier, connector, _with_row_times(at, checked), source.row_type, checked.is_changelog, key
        )
    if connector not in SINKS:
        raise UnsupportedFeatureError(
            f"{options.owner}: the connector cannot be written here; these can: {', '.join([*SINKS, COLLECT, STREAM])}"
        )
    metadata_keys, overwrites = _abilities(at, description)
    target = SinkTable(
        short_name(node.description),
        options,
        schema,
        source.row_type,
        metadata_keys,
        at.context.time_zone,
        checked.is_changelog,
        overwrites,
        is_upsert="UPDATE_BEFORE" not in node["inputChangelogMode"],
    )
    stream: Any = checked.stream
    if checked.is_changelog and schema.primary_key:
        # All changes of a key go the same way, so that they are written in their order.
        names = schema.physical.field_names()
        stream = stream.key_by(KeyOf.of(source.row_type, [names.index(each) for each in schema.primary_key]))
    made = SINKS[connector](target, stream)
    made.name(f"Sink: {target.name}")
    if not isinstance(made.transformation.operator, d.DriverSinkDescription):
        made.uid(f"{node.position}_sink")
    return TableSink(identifier, connector, None, source.row_type, checked.is_changelog, key)


def _abilities(at: Translation, description: Any) -> tuple[tuple[str, ...], bool]:
    keys: tuple[str, ...] = ()
    overwrites = False
    for ability in description.get("abilities") or ():
        match ability["type"]:
            case "WritingMetadata":
                keys = tuple(ability["metadataKeys"])
            case "Overwrite":
                overwrites = bool(ability.get("overwrite", True))
            case "Partitioning":
                if ability.get("partition"):
                    raise at.node.unsupported("INSERT into a static PARTITION")
            case other:
                raise at.node.unsupported(f"the ability {other} of a sink")
    return keys, overwrites


def _enforced(at: Translation, source: TableStream, schema: TableSchema) -> TableStream:
    setting = (at.node.get("configuration") or {}).get(_ENFORCER) or at.context.config.get(_ENFORCER, "ERROR")
    types = source.row_type.field_types()
    columns = tuple(
        (index, field.name)
        for index, field in enumerate(schema.physical.fields)
        if not field.data_type.is_nullable and index < len(types) and types[index].is_nullable
    )
    if not columns:
        return source
    alone = Translation(at.env, at.context, at.node, (source,))
    stream = alone.on_rows(NotNullEnforcer(columns, setting.upper() == "DROP"), "not-null")
    return TableStream(stream, source.row_type, source.is_changelog)


def _materialized(at: Translation, source: TableStream, schema: TableSchema) -> TableStream:
    names = schema.physical.field_names()
    keys = [names.index(each) for each in schema.primary_key]
    stream = source.keyed(keys).process(MaterializeFunction(at.node.state_ttl_ms()))
    return TableStream(at.named(stream, "materialize"), source.row_type, True)


def _with_row_times(at: Translation, source: TableStream) -> Any:
    for index, data_type in enumerate(source.row_type.field_types()):
        if getattr(data_type, "kind", "REGULAR") == "ROWTIME":
            description = d.ListFunctionDescription(list, RowTimes(index))
            return at.named(source.stream._then("Timestamps", description, None), "timestamps")
    return source.stream
