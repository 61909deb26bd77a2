"""Where Spark is installed, found without loading PySpark."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError


def spark_home() -> Path:
    """Where Spark is: SPARK_HOME, as PySpark has it, or the installed PySpark."""
    chosen = os.environ.get("SPARK_HOME")
    if chosen:
        return Path(chosen)
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise EnvironmentSetupError("PySpark is not installed here; install it with pip, or run the job with -t inline")
    return Path(found.submodule_search_locations[0])
