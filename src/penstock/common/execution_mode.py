"""How Flink 1.x exchanged data between operators: kept for the programs that set it."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """Accepted without effect: `env.set_runtime_mode(...)` chooses between streaming and batch."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
