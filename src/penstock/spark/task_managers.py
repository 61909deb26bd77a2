"""Spark's executors, as the REST API shows task managers; and whether Spark is there at all."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.spark.java_loss import has_java
from penstock.spark.task_slots import executors


def is_alive(spark: SparkSession) -> bool:
    """False if Spark's Java process has ended, or its context was stopped."""
    return has_java(spark.sparkContext)


def task_managers(spark: SparkSession) -> list[dict[str, Any]]:
    """One entry for each living executor; its slots are the tasks that it can run at once."""
    return _entries(spark.sparkContext)


def task_managers_here() -> list[dict[str, Any]] | None:
    """Those of the Spark that this process uses; None if it uses none."""
    context = SparkContext._active_spark_context
    try:
        return None if context is None else _entries(context)
    except (Py4JError, OSError, AttributeError):  # It is just being stopped.
        return None


def _entries(context: SparkContext) -> list[dict[str, Any]]:
    return [_entry(each) for each in executors(context) if each.maxTasks() > 0]


def _entry(executor: Any) -> dict[str, Any]:
    slots = int(executor.maxTasks())
    return {
        "id": str(executor.id()),
        "path": str(executor.hostPort()),
        "slotsNumber": slots,
        "freeSlots": max(0, slots - int(executor.activeTasks())),
    }
