"""Spark's Python daemon, from which workers are forked: with all that they need loaded once.

`python -m penstock.spark.worker_daemon` takes the place of `pyspark.daemon` (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc
import zipimport

from pyspark.daemon import manager

# What it loads starts no thread: a process with threads cannot be forked safely.
import penstock.spark.batch_task
import penstock.spark.resident_task
from penstock.spark.worker_packages import load_packages

__all__ = ["penstock"]


def read_archives_once() -> None:
    """Every worker has Python look for new modules, and read all of PySpark's archive for that: 120 ms of CPU time.

    Archives do not change while Spark runs: a job's own have names of their own.
    """
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    read_archives_once()
    load_packages()
    # A worker collects garbage after each task: without this it would look through all that was loaded here.
    gc.collect()
    gc.freeze()
    manager()
