"""Where rows come from: tables, values in the query, and the watermarks of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.time import Duration
from penstock.common.watermark_generator import WatermarkGenerator, WatermarkOutput
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.table.codegen.compiler import CompiledScalar
from penstock.table.codegen.rex import literal_value
from penstock.table.connectors import formats, kafka, sources
from penstock.table.connectors.options import Options
from penstock.table.connectors.tables import SourceTable, TableSchema
from penstock.table.durations import duration_ms
from penstock.table.logical_types import parse_type, row_type_of
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.rows import NANOS_PER_MILLI, RowTuple
from penstock.table.type_infos import internal_type_info
from penstock.table.types import RowType

SOURCES: dict[str, Callable[[SourceTable], Any]] = {
    "filesystem": sources.filesystem,
    "datagen": sources.datagen,
    "socket": sources.socket,
    "jdbc": sources.jdbc,
    "kafka": kafka.source,
    "upsert-kafka": kafka.source,
}
STREAM = "penstock-stream"
_IDLE = "table.exec.source.idle-timeout"


# --- watermarks ----------------------------------------------------------------------------------------------------


class SqlWatermarks(WatermarkGenerator):
    """Watermarks by an expression: the largest value so far, and never one that goes back."""

    def __init__(self, expression: CompiledScalar, is_of_lists: bool) -> None:
        self.expression = expression
        self.is_of_lists = is_of_lists
        self.current = MIN_LONG_VALUE

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        for row in event if self.is_of_lists else (event,):
            value = self.expression(row)
            if value is not None:
                self.current = max(self.current, value // NANOS_PER_MILLI)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.current > MIN_LONG_VALUE:
            output.emit_watermark(self.current)


@dataclass(frozen=True)
class WatermarkSupplier:
    expression: CompiledScalar
    is_of_lists: bool

    def __call__(self) -> SqlWatermarks:
        return SqlWatermarks(self.expression, self.is_of_lists)


@dataclass(frozen=True)
class RowTime:
    """The event time of a row in milliseconds."""

    column: int

    def __call__(self, row: RowTuple, record_timestamp: int) -> int:
        time = row[self.column]
        if time is None:
            raise InvalidProgramError("RowTime field should not be null, please convert it to a non-null long value.")
        return int(time // NANOS_PER_MILLI)


def _strategy(
    at: Translation, expression: Any, row_type: RowType, idle_ms: int | None, is_of_lists: bool
) -> WatermarkStrategy:
    compiled = CompiledScalar(expression, row_type, at.context.expressions)
    strategy = WatermarkStrategy.for_generator(WatermarkSupplier(compiled, is_of_lists))
    if idle_ms is None or idle_ms <= 0:
        idle_ms = duration_ms(at.context.config.get(_IDLE, "0 ms"))
    return strategy.with_idleness(Duration.of_millis(idle_ms)) if idle_ms > 0 else strategy


def watermark_assigner(at: Translation) -> TableStream:
    node, source = at.node, at.input
    strategy = _strategy(at, node["watermarkExpr"], source.row_type, None, is_of_lists=False)
    strategy = strategy.with_timestamp_assigner(RowTime(node["rowtimeFieldIndex"]))
    return at.then(source.stream.assign_timestamps_and_watermarks(strategy), source.is_changelog)


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass
class _Scan:
    """What the abilities of a scan leave of its table."""

    at: Translation
    schema: TableSchema
    columns: RowType
    metadata: tuple[tuple[str, Any], ...] = ()
    strategy: WatermarkStrategy | None = None
    limit: int | None = None
    known: dict[str, Callable[[Mapping[str, Any]], None]] = field(init=False)

    def __post_init__(self) -> None:
        self.known = {
            "ProjectPushDown": self.project,
            "ReadingMetadata": self.read_metadata,
            "WatermarkPushDown": self.push_watermark,
            "SourceWatermark": lambda ability: None,
            "LimitPushDown": lambda ability: None,  # A limit above the scan does it again.
        }

    def apply(self, abilities: Any) -> None:
        for ability in abilities or ():
            if ability["type"] not in self.known:
                raise self.at.node.unsupported(f"the push-down {ability['type']}")
            self.known[ability["type"]](ability)

    def project(self, ability: Mapping[str, Any]) -> None:
        fields = ability["projectedFields"]
        if any(len(each) != 1 for each in fields):
            raise self.at.node.unsupported("the push-down of nested fields")
        self.columns = RowType([self.columns.fields[each[0]] for each in fields])

    def read_metadata(self, ability: Mapping[str, Any]) -> None:
        produced = row_type_of(ability["producedType"])
        keys = ability["metadataKeys"]
        types = produced.field_types()[len(produced) - len(keys) :]
        self.metadata = tuple(zip(keys, types, strict=True))

    def push_watermark(self, ability: Mapping[str, Any]) -> None:
        row_type = row_type_of(ability["producedType"])
        expression, idle = ability["watermarkExpr"], ability.get("idleTimeoutMillis")
        self.strategy = _strategy(self.at, expression, row_type, idle, is_of_lists=True)


def resolved_table(at: Translation, description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table with its schema and options, from the plan or from the catalog."""
    table = description["table"]
    resolved = table.get("resolvedTable")
    if resolved is not None and "options" in resolved:
        return dict(resolved)
    if at.context.tables is None:
        raise InvalidProgramError(f"the plan does not say what the table {table.get('identifier')} is")
    return at.context.tables(table["identifier"])


def has_changes(options: Options) -> bool:
    """True if the rows of a source table have kinds."""
    told = options.get("penstock.changelog")
    if told is not None:
        return told != "insert"
    if options.get("connector") == "upsert-kafka":
        return True
    name = options.get("value.format") or options.get("format")
    return name is not None and formats.has_changes(name)


def table_source_scan(at: Translation) -> TableStream:
    description = at.node["scanTableSource"]
    table = resolved_table(at, description)
    identifier = str(description["table"].get("identifier", "*anonymous*"))
    values = dict(table["options"])
    connector = values.get("connector", "")
    options = Options(values, f"table {identifier} with connector {connector!r}")
    schema = TableSchema.of(table)
    if connector == STREAM:
        return _stream_table(at, options)
    if connector not in SOURCES:
        raise UnsupportedFeatureError(
            f"{options.owner}: the connector cannot be read here; these can: {', '.join([*SOURCES, STREAM])}"
        )
    scan = _Scan(at, schema, schema.physical)
    scan.apply(description.get("abilities"))
    name = at.node.description.split("(")[0] + f" {identifier.split('.')[-1].strip('`')}"
    stream = SOURCES[connector](
        SourceTable(at.env, name, options, schema, scan.columns, scan.metadata, at.context.time_zone, scan.strategy)
    )
    _name_source(at, stream)
    return TableStream(at.named(stream, "rows"), at.node.row_type, has_changes(options))


def _name_source(at: Translation, stream: Any) -> None:
    """A stable uid for the source itself, which is before the operator that makes rows of its messages."""
    source = stream.transformation.inputs[0]
    source.uid = f"{at.node.position}_{at.node.kind}"
    source.output_type = internal_type_info(at.node.row_type)


def _stream_table(at: Translation, options: Options) -> TableStream:
    name = options.required("stream")
    stream = at.context.streams.get(name)
    if stream is None:
        raise InvalidProgramError(f"{options.owner}: there is no stream {name!r}; known: {sorted(at.context.streams)}")
    description = at.node["scanTableSource"]
    for ability in description.get("abilities") or ():
        if ability["type"] == "ReadingMetadata" and ability["metadataKeys"] not in ([], ["rowtime"]):
            raise at.node.unsupported(f"the metadata {ability['metadataKeys']} of a DataStream")
        if ability["type"] not in ("ReadingMetadata", "SourceWatermark"):
            raise at.node.unsupported(f"the push-down {ability['type']} into a DataStream")
    return TableStream(stream, at.node.row_type, has_changes(options))


# --- values --------------------------------------------------------------------------------------------------------


def values(at: Translation) -> TableStream:
    rows = [tuple([_literal(each) for each in tuple_]) for tuple_ in at.node["tuples"]]
    stream = at.env.from_collection(rows)
    return at.then(stream, False)


def _literal(rex: Mapping[str, Any]) -> Any:
    value = literal_value(rex.get("value"), parse_type(rex["type"]))
    return value if not isinstance(value, float) or not math.isnan(value) else math.nan
