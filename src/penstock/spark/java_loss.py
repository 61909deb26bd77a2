"""What is known of Spark's Java process when it has ended before us: killed for its memory, for example."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

_ENDS_WITHIN_S = 5
"""Its connections end a moment before it does."""


def has_java(context: SparkContext | Any) -> bool:
    """False if Spark's Java process has ended, or its context was stopped."""
    try:
        return not context._jsc.sc().isStopped()
    except (Py4JError, OSError, AttributeError):  # PySpark forgets the context when it loses the process
        return False


def java_loss(context: SparkContext | Any) -> str | None:
    """Why nothing can run on a context any more; None if something can."""
    if has_java(context):
        return None
    process = getattr(SparkContext._gateway, "proc", None)
    try:
        code = None if process is None else process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        return "the SparkContext was stopped"
    if code is None:
        return "Spark's Java process has ended, or its SparkContext was stopped"
    how = f"was killed by signal {-code}" if code < 0 else f"has ended with code {code}"
    return f"Spark's Java process {how}"


def unless_java_ended(context: SparkContext | Any, act: Callable[[], object]) -> None:
    """Do something that makes no difference if the Java process has ended."""
    try:
        act()
    except (Py4JError, OSError, AttributeError):
        if has_java(context):
            raise
