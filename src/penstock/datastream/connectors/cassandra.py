"""Cassandra: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
]

_INSTEAD = (
    "write from a SinkFunction with Cassandra's Python driver, or hand the stream to Spark's Cassandra "
    "connector with stream.to_data_frame(...)"
)


class CassandraCommitter(metaclass=UnavailableConnector):
    instead = _INSTEAD


class CassandraFailureHandler(metaclass=UnavailableConnector):
    instead = _INSTEAD


class CassandraSink(metaclass=UnavailableConnector):
    instead = _INSTEAD

    class CassandraSinkBuilder(metaclass=UnavailableConnector):
        instead = _INSTEAD


class ClusterBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class ConsistencyLevel(metaclass=UnavailableConnector):
    instead = _INSTEAD


class MapperOptions(metaclass=UnavailableConnector):
    instead = _INSTEAD
