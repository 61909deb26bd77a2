"""How often a record may take effect after a failure."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee a job's state gives after recovery.

    >>> env.enable_checkpointing(10_000, CheckpointingMode.EXACTLY_ONCE).get_checkpointing_mode().name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    """Every record takes effect in the state exactly once."""

    AT_LEAST_ONCE = 1
    """A record may take effect more than once after a failure.

    Accepted as in Flink. An epoch ends at the same point everywhere, so state is exactly once here as well.
    """
