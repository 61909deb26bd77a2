"""How many cores this machine has for a job, and how many of them a Spark master on it names. Needs no PySpark."""

from __future__ import annotations

import os
import re

_LOCAL = re.compile(r"local\[(\d+|\*)(?:\s*,\s*\d+)?\]")


def machine_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores_of(master: str, of_machine: int) -> int | None:
    """How many cores a local master names; None for any other.

    >>> cores_of("local[*]", of_machine=8), cores_of("local", 8), cores_of("spark://host:7077", 8)
    (8, 1, None)
    """
    if master == "local":
        return 1
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    return of_machine if found[1] == "*" else int(found[1])
