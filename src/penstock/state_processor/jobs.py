"""Runs the Spark jobs of this package."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from penstock.common import exceptions
from penstock.common.configuration import Configuration
from penstock.common.exceptions import CheckpointError
from penstock.datastream.dependencies import JobDependencies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OUR_ERROR = re.compile(r"penstock\.common\.exceptions\.(\w+): (.*)")
_RAISED = re.compile(r"^[\w.]+(?:Error|Exception): .*", re.MULTILINE)


def session(spark: SparkSession | None) -> SparkSession:
    """The session to work on; its executors have this package."""
    from penstock.spark.dependencies import ship
    from penstock.spark.session import get_session

    chosen = get_session(Configuration()) if spark is None else spark
    use_this_python(chosen.sparkContext)
    ship(chosen.sparkContext, JobDependencies(), Configuration())
    return chosen


def use_this_python(context: Any) -> None:
    """Have the tasks of a local session run this Python, unless PYSPARK_PYTHON names one.

    A session that the program has made would run the `python3` of the search path, which in a virtual environment that
    is not activated is another one, without our packages.
    """
    if "PYSPARK_PYTHON" not in os.environ and context.master.startswith("local"):
        context.pythonExec = sys.executable


def numbers(spark: SparkSession, count: int) -> DataFrame:
    """The numbers below `count`, each in a task of its own."""
    return spark.range(0, count, 1, max(count, 1))


def collected(data_frame: DataFrame, what: str) -> list[Any]:
    """The rows of a DataFrame. Errors of its tasks are raised here as they were there, without Spark's frames."""
    from pyspark.errors import PySparkException

    try:
        return data_frame.collect()
    except PySparkException as error:
        text = str(error)
        ours = _OUR_ERROR.findall(text)
        if ours:
            name, message = ours[-1]
            raise getattr(exceptions, name)(message) from error
        raised = _RAISED.findall(text)
        raise CheckpointError(f"{what}: {raised[-1] if raised else text}") from error
