"""Kinesis: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "FlinkKinesisConsumer",
    "KinesisDeserializationSchema",
    "KinesisFirehoseSink",
    "KinesisFirehoseSinkBuilder",
    "KinesisShardAssigner",
    "KinesisStreamsSink",
    "KinesisStreamsSinkBuilder",
    "PartitionKeyGenerator",
    "WatermarkTracker",
]

_INSTEAD = (
    "use boto3: a SimpleSource whose splits are the shards and whose offsets are sequence numbers "
    "(get_shard_iterator with AFTER_SEQUENCE_NUMBER, get_records) reads exactly once, and a Sink whose writer calls "
    "put_records in flush() writes at least once"
)


class FlinkKinesisConsumer(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisDeserializationSchema(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisFirehoseSink(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisFirehoseSinkBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisShardAssigner(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisStreamsSink(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KinesisStreamsSinkBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PartitionKeyGenerator(metaclass=UnavailableConnector):
    instead = _INSTEAD


class WatermarkTracker(metaclass=UnavailableConnector):
    instead = _INSTEAD
