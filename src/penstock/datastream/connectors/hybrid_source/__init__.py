"""Sources read one after the other as one."""

from __future__ import annotations

from penstock.datastream.connectors.hybrid_source.source import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]
