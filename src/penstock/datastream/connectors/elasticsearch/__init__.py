"""Writing to Elasticsearch 7, 8 and 9 by its own Python client. OpenSearch has a module `opensearch` next to this."""

from penstock.datastream.connectors.elasticsearch.emitter import Action, ElasticsearchEmitter
from penstock.datastream.connectors.elasticsearch.sink import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchSink,
    ElasticsearchSinkBuilderBase,
    FlushBackoffType,
)

__all__ = [
    "Action",
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]
