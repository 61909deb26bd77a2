"""Spark's executors, as the REST API shows task managers; and whether Spark is there at all."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.spark.java_loss import has_java


def is_alive(spark: SparkSession) -> bool:
    """False if Spark's Java process has ended, or its context was stopped."""
    return has_java(spark.sparkContext)


def task_managers(spark: SparkSession) -> list[dict[str, Any]]:
    """One entry for each living executor; its slots are the tasks that it can run at once."""
    return _executors(spark.sparkContext)


def task_managers_here() -> list[dict[str, Any]] | None:
    """Those of the Spark that this process uses; None if it uses none."""
    context = SparkContext._active_spark_context
    try:
        return None if context is None else _executors(context)
    except (Py4JError, OSError, AttributeError):  # It is just being stopped.
        return None


def _executors(context: SparkContext) -> list[dict[str, Any]]:
    known = context._jsc.sc().statusStore().executorList(True)
    executors = [known.apply(number) for number in range(known.size())]
    # On a cluster Spark lists the driver too, which runs no tasks.
    return [_entry(each) for each in executors if each.maxTasks() > 0]


def _entry(executor: Any) -> dict[str, Any]:
    slots = int(executor.maxTasks())
    return {
        "id": str(executor.id()),
        "path": str(executor.hostPort()),
        "slotsNumber": slots,
        "freeSlots": max(0, slots - int(executor.activeTasks())),
    }
