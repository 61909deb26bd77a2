"""What happens to checkpoints when a job ends."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointCleanup", "ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether the last checkpoints outlive a job that is cancelled or fails.

    >>> retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    >>> _ = env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
    """

    DELETE_ON_CANCELLATION = 0
    """Deleted when the job is cancelled, kept when it fails."""

    RETAIN_ON_CANCELLATION = 1
    """Kept when the job is cancelled or fails; remove them yourself when they are no longer needed."""

    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Deleted whenever the job ends."""


#: The name in Flink 1.x.
ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
