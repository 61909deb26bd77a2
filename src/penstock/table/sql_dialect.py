"""The dialects of SQL."""

from __future__ import annotations


class SqlDialect:
    """The dialect in which statements are written. Only Flink's own is supported.

    >>> SqlDialect.DEFAULT
    0
    """

    DEFAULT = 0
    HIVE = 1
