"""Which packages are loaded in the process from which a job's workers are forked."""

from __future__ import annotations

import importlib
import os
from typing import Any, cast

from pyspark import SparkContext

JOB_BRINGS_PACKAGES = "PENSTOCK_JOB_BRINGS_PACKAGES"


def load_packages() -> None:
    """In that process: load what every worker would load again.

    PySpark's part takes longest, since it is compiled from its archive every time. None of it starts a thread: a
    process with threads cannot be forked safely.
    """
    importlib.import_module("pyspark.worker")
    if JOB_BRINGS_PACKAGES not in os.environ:
        importlib.import_module("numpy")


def context_for_workers(context: SparkContext, job_brings_packages: bool) -> SparkContext:
    """The context to make a job's RDDs with.

    A job that brings packages may bring another NumPy, and a process can load only one. Spark forks from one process
    for each environment that RDDs are made with: another variable gives such jobs one that has not loaded NumPy, unless
    PySpark has done so itself, as 4.1 does.
    """
    if not job_brings_packages:
        return context
    own: Any = object.__new__(SparkContext)  # PySpark refuses to copy a context; this one shares everything else.
    own.__dict__.update(context.__dict__, environment={**context.environment, JOB_BRINGS_PACKAGES: "1"})
    return cast(SparkContext, own)
