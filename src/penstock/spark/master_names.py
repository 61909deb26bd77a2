"""What the name of Spark's master says. Workers load this, so it needs nothing else."""

from __future__ import annotations


def is_local_master(master: str) -> bool:
    """True for `local`, `local[4]` and their like: driver and workers share one Java process."""
    return master == "local" or master.startswith("local[")
