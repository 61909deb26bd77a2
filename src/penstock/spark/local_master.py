"""Spark on this machine alone: what its master's name says. Needs no PySpark."""

from __future__ import annotations

import re

CORES = "spark.penstock.cores"
"""In sessions that Penstock makes on one machine: how many workers a region has at most. Spark has more slots."""
_LOCAL = re.compile(r"local\[(\d+|\*)(?:\s*,\s*\d+)?\]")


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
