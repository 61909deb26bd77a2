"""Spark's Python daemon with Penstock's workers under watch; see benchmarks/epoch_spans.py."""

from __future__ import annotations

from pyspark.daemon import manager

from benchmarks.epoch_spans import watch_workers

if __name__ == "__main__":
    watch_workers()
    manager()
