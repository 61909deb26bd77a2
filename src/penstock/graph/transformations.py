"""The nodes that the DataStream API builds. They may still be named, scaled and configured until execute()."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.graph.descriptions import OperatorDescription
from penstock.graph.partitioners import StreamPartitioner


class ChainingStrategy(Enum):
    """Whether an operator may share a task with its neighbours."""

    ALWAYS = "ALWAYS"
    HEAD = "HEAD"
    """Starts a chain: successors may join, predecessors may not."""
    NEVER = "NEVER"


@dataclass(eq=False)
class Transformation:
    """A node of the program. `id` is unique within the environment and shown in the plan."""

    id: int
    name: str
    parallelism: int
    inputs: Sequence[Transformation] = ()
    output_type: Any = None
    """TypeInformation of the elements, None for pickled Python objects."""


@dataclass(eq=False)
class PhysicalTransformation(Transformation):
    """A node that becomes an operator: a source, an operator or a sink."""

    operator: OperatorDescription = field(kw_only=True)
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    max_parallelism: int | None = None
    slot_sharing_group: str | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout_ms: int = -1
    is_parallelism_fixed: bool = False
    """True for an operator that cannot run in parallel."""
    resources: Any = None
    made_at: str | None = None
    """The line of the program that made it."""
    on_error: Any = None
    """The OnError of this operator; None for that of the job."""


@dataclass(eq=False)
class PartitionTransformation(Transformation):
    """Says how the elements of its input reach the next operator."""

    partitioner: StreamPartitioner = field(kw_only=True)


@dataclass(eq=False)
class UnionTransformation(Transformation):
    """All elements of all inputs."""


@dataclass(eq=False)
class SideOutputTransformation(Transformation):
    """The elements that its input emits to the side output `tag_id`."""

    tag_id: str = field(kw_only=True)
