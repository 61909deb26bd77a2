"""How many tasks this machine runs at once: the parallelism of Flink's local environment."""

from __future__ import annotations

import os
import re


def local_cores(spark_master: str | None = None) -> int | None:
    """The cores that this process may use, or as many as a local master names; None for a master elsewhere."""
    named = re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", spark_master or "local[*]")
    if named is not None:
        return int(named[1])
    if spark_master is not None and not spark_master.startswith("local[*") and spark_master != "local":
        return None
    if spark_master == "local":
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
