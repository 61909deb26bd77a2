"""RabbitMQ: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
]

_INSTEAD = "read and write with a SourceFunction and a SinkFunction over RabbitMQ's Python client"


class RMQConnectionConfig(metaclass=UnavailableConnector):
    instead = _INSTEAD

    class Builder(metaclass=UnavailableConnector):
        instead = _INSTEAD


class RMQSink(metaclass=UnavailableConnector):
    instead = _INSTEAD


class RMQSource(metaclass=UnavailableConnector):
    instead = _INSTEAD
