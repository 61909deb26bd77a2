"""Writing to OpenSearch with its own Python client, in the same way as to Elasticsearch, from which it comes."""

from __future__ import annotations

from penstock.datastream.connectors.elasticsearch import ElasticsearchEmitter, ElasticsearchSinkBuilderBase

__all__ = ["OpensearchEmitter", "OpensearchSinkBuilder"]

OpensearchEmitter = ElasticsearchEmitter


class OpensearchSinkBuilder(ElasticsearchSinkBuilderBase):
    """For OpenSearch; its options are those of `Elasticsearch7SinkBuilder`. Needs `penstock[opensearch]`.

    `Elasticsearch7SinkBuilder` has an example.
    """

    _package = "opensearchpy"
