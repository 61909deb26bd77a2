"""Pipelined regions: the parts of a job that exchange nothing with each other, so that each can fail alone."""

from __future__ import annotations

from penstock.graph.job_graph import JobGraph

Region = frozenset[int]
"""The vertices of a region."""


def pipelined_regions(job_graph: JobGraph) -> list[Region]:
    """The connected components of the job, in the order of their first vertices."""
    region_of = {vertex.id: frozenset({vertex.id}) for vertex in job_graph.vertices}
    for edge in job_graph.edges:
        joined = region_of[edge.source_vertex] | region_of[edge.target_vertex]
        region_of.update(dict.fromkeys(joined, joined))
    return sorted(set(region_of.values()), key=min)
