"""Databases as sinks."""

from __future__ import annotations

from penstock.datastream.connectors.jdbc.sink import (
    JdbcConnectionOptions,
    JdbcConnectionOptionsBuilder,
    JdbcExactlyOnceOptions,
    JdbcExactlyOnceOptionsBuilder,
    JdbcExactlyOnceSink,
    JdbcExecutionOptions,
    JdbcExecutionOptionsBuilder,
    JdbcSink,
)

__all__ = [
    "JdbcConnectionOptions",
    "JdbcConnectionOptionsBuilder",
    "JdbcExactlyOnceOptions",
    "JdbcExactlyOnceOptionsBuilder",
    "JdbcExactlyOnceSink",
    "JdbcExecutionOptions",
    "JdbcExecutionOptionsBuilder",
    "JdbcSink",
]
