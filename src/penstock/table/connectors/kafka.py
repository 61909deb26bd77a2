"""Tables in Kafka: `kafka` and `upsert-kafka`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka.deserialization import KafkaConsumerRecord, KafkaRecordDeserializationSchema
from penstock.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.kafka.records import FixedTopic, KafkaRecord, KafkaRecordSerializationSchema
from penstock.datastream.connectors.kafka.sink import KafkaSink
from penstock.datastream.connectors.kafka.source import KafkaSource
from penstock.table.connectors import formats
from penstock.table.connectors.options import Options
from penstock.table.connectors.sources import Rows, rows_of
from penstock.table.connectors.tables import SinkTable, SourceTable
from penstock.table.durations import duration_ms
from penstock.table.rows import DELETE, INSERT, NANOS_PER_MILLI, UPDATE_AFTER, RowTuple, is_accumulate
from penstock.table.types import RowField, RowType

METADATA: dict[str, Callable[[KafkaConsumerRecord], Any]] = {
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "headers": lambda record: dict(record.headers),
    "timestamp": lambda record: None if record.timestamp is None else record.timestamp * NANOS_PER_MILLI,
    "timestamp-type": lambda record: "NoTimestampType" if record.timestamp is None else "CreateTime",
    "leader-epoch": lambda record: None,
}


@dataclass(frozen=True)
class KeyAndValue:
    """Which columns are in a record's key and which in its value."""

    key: tuple[int, ...]
    value: tuple[int, ...]

    @staticmethod
    def of(options: Options, columns: RowType, primary_key: tuple[str, ...]) -> KeyAndValue:
        names = columns.field_names()
        fields = options.get("key.fields")
        key_names = [each.strip() for each in fields.split(";")] if fields else list(primary_key)
        unknown = [each for each in key_names if each not in names]
        if unknown:
            raise InvalidProgramError(f"{options.owner}: 'key.fields' names {unknown}, which are no columns: {names}")
        include = options.choice("value.fields-include", ("ALL", "EXCEPT_KEY"), "ALL")
        key = tuple(names.index(each) for each in key_names)
        value = tuple(i for i in range(len(names)) if include == "ALL" or i not in key)
        return KeyAndValue(key, value)


def _part(columns: RowType, indices: tuple[int, ...], prefix: str = "") -> RowType:
    fields = columns.fields
    return RowType([RowField(fields[i].name.removeprefix(prefix), fields[i].data_type) for i in indices])


class _RecordRows(KafkaRecordDeserializationSchema):
    """The rows of a record: key and value, then metadata, then the kind if there are changes."""

    def __init__(
        self,
        key: formats.RowDecoder | None,
        value: formats.RowDecoder,
        places: KeyAndValue,
        width: int,
        metadata: tuple[str, ...],
        has_changes: bool,
        is_upsert: bool,
    ) -> None:
        super().__init__()
        self.key = key
        self.value = value
        self.places = places
        self.width = width
        self.metadata = metadata
        self.has_changes = has_changes
        self.is_upsert = is_upsert

    def deserialize_record(self, record: KafkaConsumerRecord) -> Rows | None:
        more = tuple([METADATA[key](record) for key in self.metadata])
        keys = [()] if self.key is None else self.key.rows(record.key)
        if record.value is None:
            if not self.is_upsert:
                return None
            return [(*self.row(key, ()), *more, DELETE) for key in keys] or None
        made = []
        for value in self.value.rows(record.value):
            for key in keys:
                row = (*self.row(key, value), *more)
                if self.is_upsert:
                    row = (*row, UPDATE_AFTER)
                elif self.has_changes:
                    row = (*row, value[-1])
                made.append(row)
        return made or None

    def row(self, key: RowTuple, value: RowTuple) -> RowTuple:
        if self.key is None:
            return value[: self.width]
        row: list[Any] = [None] * self.width
        for place, item in zip(self.places.value, value, strict=False):
            row[place] = item
        for place, item in zip(self.places.key, key, strict=True):
            row[place] = item
        return tuple(row)


def source(table: SourceTable) -> Any:
    """The records of topics. The watermarks of the partitions are kept apart."""
    options, is_upsert = table.options, table.options.get("connector") == "upsert-kafka"
    value_keys = [key for key, _ in table.metadata if key.startswith("value.")]
    if value_keys:
        raise InvalidProgramError(f"{options.owner}: the format has no metadata {value_keys}")
    table.refuse_metadata(*METADATA)
    schema = _record_schema(table, is_upsert)
    builder = KafkaSource.builder().set_deserializer(schema).set_properties(options.below("properties."))
    if topic := options.get("topic"):
        builder = builder.set_topics(*[each.strip() for each in topic.split(";")])
    else:
        builder = builder.set_topic_pattern(options.required("topic-pattern"))
    start = KafkaOffsetsInitializer.earliest() if is_upsert else _start(options)
    builder = builder.set_starting_offsets(start)
    end = _bound(options)
    if end is not None:
        builder = builder.set_bounded(end)
    if interval := options.get("scan.topic-partition-discovery.interval"):
        builder = builder.set_property("partition.discovery.interval.ms", str(duration_ms(interval)))
    return rows_of(table.env.from_source(builder.build(), table.watermarks, table.name))


def _record_schema(table: SourceTable, is_upsert: bool) -> _RecordRows:
    options, zone = table.options, table.time_zone
    places = KeyAndValue.of(options, table.columns, table.schema.primary_key if is_upsert else ())
    prefix = options.get("key.fields-prefix") or ""
    key_decoder = None
    if places.key:
        key_columns = _part(table.columns, places.key, prefix)
        key_decoder = formats.decoder(options.required("key.format"), options, key_columns, zone, "key.")
    name = formats.format_name(options, "value.")
    value_decoder = formats.decoder(name, options, _part(table.columns, places.value), zone, "value.")
    keys = tuple(key for key, _ in table.metadata)
    changes = formats.has_changes(name)
    return _RecordRows(key_decoder, value_decoder, places, len(table.columns), keys, changes, is_upsert)


def _start(options: Options) -> KafkaOffsetsInitializer:
    mode = options.get("scan.startup.mode") or "group-offsets"
    match mode:
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            reset = (options.get("properties.auto.offset.reset") or "none").upper()
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[reset])
        case "timestamp":
            return KafkaOffsetsInitializer.timestamp(int(options.required("scan.startup.timestamp-millis")))
        case "specific-offsets":
            return KafkaOffsetsInitializer.offsets(_offsets(options, "scan.startup.specific-offsets"))
    raise InvalidProgramError(f"{options.owner}: 'scan.startup.mode' {mode!r} is not known")


def _bound(options: Options) -> KafkaOffsetsInitializer | None:
    mode = options.get("scan.bounded.mode") or "unbounded"
    match mode:
        case "unbounded":
            return None
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets":
            return KafkaOffsetsInitializer.committed_offsets()
        case "timestamp":
            return KafkaOffsetsInitializer.timestamp(int(options.required("scan.bounded.timestamp-millis")))
        case "specific-offsets":
            return KafkaOffsetsInitializer.offsets(_offsets(options, "scan.bounded.specific-offsets"))
    raise InvalidProgramError(f"{options.owner}: 'scan.bounded.mode' {mode!r} is not known")


def _offsets(options: Options, key: str) -> dict[KafkaTopicPartition, int]:
    """`partition:0,offset:42;partition:1,offset:300`."""
    topic = options.required("topic")
    found = {}
    for part in options.required(key).split(";"):
        fields = dict(each.strip().split(":", 1) for each in part.split(","))
        found[KafkaTopicPartition(topic, int(fields["partition"]))] = int(fields["offset"])
    return found


class _RowRecords(KafkaRecordSerializationSchema):
    """The record of a row: what decides is the row's kind, its columns and its metadata."""

    def __init__(
        self,
        topic: str,
        key: formats.RowEncoder | None,
        value: formats.RowEncoder,
        places: KeyAndValue,
        metadata: dict[str, int],
        is_changelog: bool,
        is_upsert: bool,
    ) -> None:
        object.__setattr__(self, "topic_selector", FixedTopic(topic))
        for name, given in (("key_schema", None), ("header_provider", None), ("partitioner", None)):
            object.__setattr__(self, name, given)
        object.__setattr__(self, "parts", (topic, key, value, places, metadata, is_changelog, is_upsert))

    def serialize(self, element: Any) -> bytes | None:
        return self.to_record(element).value

    def to_record(self, element: RowTuple) -> KafkaRecord:
        topic, key, value, places, metadata, is_changelog, is_upsert = self.parts  # type: ignore[attr-defined]
        kind = element[-1] if is_changelog else INSERT
        key_bytes = None if key is None else key.encode(tuple([element[i] for i in places.key]))
        time = element[metadata["timestamp"]] if "timestamp" in metadata else None
        headers = element[metadata["headers"]] if "headers" in metadata else None
        timestamp = None if time is None else time // NANOS_PER_MILLI
        more = tuple((headers or {}).items())
        if is_upsert and not is_accumulate(kind):
            return KafkaRecord(topic, key_bytes, None, more, timestamp=timestamp)
        value_bytes = value.encode(tuple([element[i] for i in places.value]), kind)
        return KafkaRecord(topic, key_bytes, value_bytes, more, timestamp=timestamp)


def sink(table: SinkTable, stream: Any) -> Any:
    """Rows to a topic; with `upsert-kafka` a delete is a record without a value."""
    options, is_upsert = table.options, table.options.get("connector") == "upsert-kafka"
    name = formats.format_name(options, "value.")
    if not is_upsert and not formats.has_changes(name):
        table.refuse_changes()
    columns, zone = table.columns, table.time_zone
    places = KeyAndValue.of(options, columns, table.schema.primary_key if is_upsert else ())
    key = None
    if places.key:
        prefix = options.get("key.fields-prefix") or ""
        key = formats.encoder(options.required("key.format"), options, _part(columns, places.key, prefix), zone, "key.")
    value = formats.encoder(name, options, _part(columns, places.value), zone, "value.")
    metadata = {each: len(columns) + at for at, each in enumerate(table.metadata_keys)}
    schema = _RowRecords(options.required("topic"), key, value, places, metadata, table.is_changelog, is_upsert)
    builder = KafkaSink.builder().set_record_serializer(schema)
    for property_name, setting in options.below("properties.").items():
        if property_name == "bootstrap.servers":
            builder = builder.set_bootstrap_servers(setting)
        else:
            builder = builder.set_property(property_name, setting)
    guarantee = options.get("sink.delivery-guarantee") or "at-least-once"
    builder = builder.set_delivery_guarantee(DeliveryGuarantee[guarantee.upper().replace("-", "_")])
    if transactions := options.get("sink.transactional-id-prefix"):
        builder = builder.set_transactional_id_prefix(transactions)
    return stream.sink_to(builder.build())
