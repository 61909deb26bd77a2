"""Sources read one after the other: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "HybridSource",
    "HybridSourceBuilder",
]

_INSTEAD = "read the bounded source in one job and start the other where it ended, or use first.union(second)"


class HybridSource(metaclass=UnavailableConnector):
    instead = _INSTEAD


class HybridSourceBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD
