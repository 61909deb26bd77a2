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
    "read and write with a SourceFunction and a SinkFunction over boto3, or hand in a DataFrame of "
    "Spark's Kinesis connector with env.from_data_frame(...)"
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
