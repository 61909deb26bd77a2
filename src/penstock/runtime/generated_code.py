"""The Python loops that are generated for the chains of a job, for people to read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.runtime.generated_loop import Source
from penstock.runtime.operator_chain import OperatorChain
from penstock.runtime.operators.base import TaskInfo


@dataclass(frozen=True)
class GeneratedCode:
    """One generated function."""

    vertex: str
    """The name of the job vertex whose subtasks run it."""
    title: str
    """The operators whose work it does."""
    source: str

    def as_text(self) -> str:
        """The source with a heading, as one block of Python."""
        return textwrap.indent(f"{self.vertex}\n{self.title}\n", "# ") + self.source


@runtime_checkable
class HasGeneratedCode(Protocol):
    """An operator, or the sending end of an edge, that can show its generated functions before it is opened."""

    def generated_sources(self) -> Sequence[Source]: ...


def sources_of(job_graph: JobGraph) -> list[GeneratedCode]:
    """The loops of map, flat_map and filter, and of combining before an exchange, in the order of the vertices.

    Operators are built but not opened, so no user function is called. The loops of process functions, windows and
    rolling reduces are not included.
    """
    return [code for vertex in job_graph.vertices for code in _sources_of_vertex(job_graph, vertex)]


def _sources_of_vertex(job_graph: JobGraph, vertex: JobVertex) -> Iterator[GeneratedCode]:
    task = TaskInfo("", job_graph.job_name, vertex.name, 0, vertex.parallelism, vertex.max_parallelism)
    chain = OperatorChain(job_graph, vertex, task, lambda: 0, lambda: (0, 1), [], {})
    for part in (*chain.operators, *chain.edges):
        if isinstance(part, HasGeneratedCode):
            for source in part.generated_sources():
                yield GeneratedCode(vertex.name, source.filename[1:-1], source.text)
