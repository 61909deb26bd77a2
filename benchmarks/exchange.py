"""How many bytes the workers of a job on Penstock send to each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import pairwise
from types import TracebackType

from penstock.datastream.launch import Launch, launching, starting_configuration
from penstock.graph.execution_graph import ExecutionGraph
from penstock.jobmaster.local_job_client import LocalJobClient


class ExchangeWatch:
    """Learns of the jobs that are executed within it: `with ExchangeWatch() as watch: ...`."""

    def __init__(self) -> None:
        self._launch = Launch(starting_configuration())
        self._within: AbstractContextManager[None] = launching(self._launch)

    def __enter__(self) -> ExchangeWatch:
        self._within.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._within.__exit__(kind, exc, tb)

    def shuffled_bytes(self) -> int | None:
        """What subtasks have reported. None if a job manager elsewhere ran a job: its clients do not get them."""
        total = 0
        for client in self._launch.clients:
            if not isinstance(client, LocalJobClient):
                return None
            total += shuffled_bytes(client.master.execution_graph)
        return total


def shuffled_bytes(graph: ExecutionGraph) -> int:
    """The chunks that came to a stage through Spark's shuffle; what goes to the driver does not."""
    exchanging = _stages_with_exchange(graph)
    return sum(
        subtask.current.facts.bytes_in
        for vertex in graph.job_vertices
        if vertex.job_vertex.stage in exchanging
        for subtask in vertex.subtasks
    )


def _stages_with_exchange(graph: ExecutionGraph) -> set[int]:
    """Spark runs a stage of one slot together with the one before it, if that has one slot, too."""
    stages = sorted({vertex.stage for vertex in graph.job_graph.vertices if vertex.stage >= 0})
    widths = {
        stage: max(vertex.parallelism for vertex in graph.job_graph.vertices if vertex.stage == stage)
        for stage in stages
    }
    return {later for earlier, later in pairwise(stages) if (widths[earlier], widths[later]) != (1, 1)}
