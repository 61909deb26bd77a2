"""Whether a job runs as a stream or as a batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How a job is executed.

    `StreamExecutionEnvironment.set_runtime_mode` has an example.
    """

    STREAMING = 0
    """Epoch after epoch, with checkpoints; works for bounded and unbounded sources."""

    BATCH = 1
    """One run over bounded sources; each key gives its final result only."""

    AUTOMATIC = 2
    """`BATCH` if all sources are bounded, otherwise `STREAMING`."""
