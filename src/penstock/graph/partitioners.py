"""How records choose the subtask they go to, as values. `penstock.runtime.partitioning` does the choosing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, eq=False)
class StreamPartitioner:
    """Base of all partitioners. `ship_strategy` is the word in the plan."""

    ship_strategy: ClassVar[str]
    is_pointwise: ClassVar[bool] = False
    """True if a subtask is connected to some subtasks downstream only, not to all."""


@dataclass(frozen=True, eq=False)
class ForwardPartitioner(StreamPartitioner):
    """To the subtask of the same number."""

    ship_strategy: ClassVar[str] = "FORWARD"
    is_pointwise: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class RebalancePartitioner(StreamPartitioner):
    """Round robin over all subtasks."""

    ship_strategy: ClassVar[str] = "REBALANCE"


@dataclass(frozen=True, eq=False)
class RescalePartitioner(StreamPartitioner):
    """Round robin over a subset of the subtasks."""

    ship_strategy: ClassVar[str] = "RESCALE"
    is_pointwise: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class ShufflePartitioner(StreamPartitioner):
    """Random."""

    ship_strategy: ClassVar[str] = "SHUFFLE"


@dataclass(frozen=True, eq=False)
class BroadcastPartitioner(StreamPartitioner):
    """To every subtask."""

    ship_strategy: ClassVar[str] = "BROADCAST"


@dataclass(frozen=True, eq=False)
class GlobalPartitioner(StreamPartitioner):
    """To the first subtask."""

    ship_strategy: ClassVar[str] = "GLOBAL"


@dataclass(frozen=True, eq=False)
class KeyGroupStreamPartitioner(StreamPartitioner):
    """To the subtask that owns the key group of the record's key."""

    ship_strategy: ClassVar[str] = "HASH"
    key_selector: Callable[[Any], Any]
    made_at: str | None = None
    """The line of the program that chose the key."""


@dataclass(frozen=True, eq=False)
class CustomPartitioner(StreamPartitioner):
    """To the subtask that `partitioner(key, number of subtasks)` says."""

    ship_strategy: ClassVar[str] = "CUSTOM"
    partitioner: Callable[[Any, int], int]
    key_selector: Callable[[Any], Any]


def connected_downstream(
    partitioner: StreamPartitioner, subtask: int, parallelism: int, target_parallelism: int
) -> range:
    """The subtasks that `subtask` may send to."""
    if not partitioner.is_pointwise:
        return range(target_parallelism)
    if parallelism >= target_parallelism:
        # The only t with t * P / T <= subtask < (t + 1) * P / T.
        target = next(
            t
            for t in range(target_parallelism)
            if subtask in connected_upstream(partitioner, t, parallelism, target_parallelism)
        )
        return range(target, target + 1)
    start = -(-subtask * target_parallelism // parallelism)
    end = -(-(subtask + 1) * target_parallelism // parallelism)
    return range(start, end)


def connected_upstream(
    partitioner: StreamPartitioner, subtask: int, source_parallelism: int, parallelism: int
) -> range:
    """The subtasks that may send to `subtask`; Flink's formula for pointwise connections."""
    if not partitioner.is_pointwise:
        return range(source_parallelism)
    if source_parallelism >= parallelism:
        return range(subtask * source_parallelism // parallelism, (subtask + 1) * source_parallelism // parallelism)
    source = subtask * source_parallelism // parallelism
    return range(source, source + 1)
