"""Penstock: Flink's stream processing model on Spark, in Python."""

from __future__ import annotations

__version__ = "0.1.0"
