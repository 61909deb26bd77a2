"""The parallelism of a program that sets none: as in Flink, the number of cores on one machine and 1 on a cluster."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.cores import cores_of, machine_cores

_SESSIONS = "penstock.spark.session"
_STARTED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
_EVERY_CORE = "local[*]"


def default_parallelism(config: Configuration, spark: Any, local: int | None) -> int:
    """The parallelism of operators that set none.

    :param spark: The session that the program has named, or None.
    :param local: What the program has named for one machine, or None for the number of its cores.
    """
    cores = _cores(config, spark)
    if cores is None:
        return keys.PARALLELISM.default
    return cores if local is None else local


def _cores(config: Configuration, spark: Any) -> int | None:
    """The cores of this machine that the job may use; None if it runs elsewhere."""
    target = config.get(keys.TARGET).lower()
    if target == "remote":
        return None
    if target == "inline":
        return machine_cores()
    if spark is not None or "pyspark" in sys.modules:
        sessions = importlib.import_module(_SESSIONS)
        context = sessions.running_context(spark)
        if context is not None:
            cores: int | None = sessions.cores_of_context(context)
            return cores
    if _STARTED_BY_SPARK_SUBMIT in os.environ:
        return None  # Its master is not known before the first job, and it is written for any cluster.
    return cores_of(config.to_dict().get("spark.master", _EVERY_CORE), machine_cores())
