"""Elasticsearch: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]

_INSTEAD = (
    "write from a SinkFunction with Elasticsearch's Python client, or hand the stream to Spark's "
    "Elasticsearch connector with stream.to_data_frame(...)"
)


class Elasticsearch6SinkBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class Elasticsearch7SinkBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class ElasticsearchEmitter(metaclass=UnavailableConnector):
    instead = _INSTEAD


class ElasticsearchSink(metaclass=UnavailableConnector):
    instead = _INSTEAD


class ElasticsearchSinkBuilderBase(metaclass=UnavailableConnector):
    instead = _INSTEAD


class FlushBackoffType(metaclass=UnavailableConnector):
    instead = _INSTEAD
