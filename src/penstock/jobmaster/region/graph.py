"""The part of a job's graphs that a region is: its vertices, and the attempts of their subtasks."""

from __future__ import annotations

from penstock.common.clocks import wall_clock_ms
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState
from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region
from penstock.runtime.failure import TaskFailure


class RegionGraph:
    def __init__(self, job_graph: JobGraph, execution_graph: ExecutionGraph, region: Region) -> None:
        self.vertices = [vertex for vertex in job_graph.vertices if vertex.id in region]
        self.subtask_count = sum(vertex.parallelism for vertex in self.vertices)
        self.operator_ids = {node.operator_id for vertex in self.vertices for node in vertex.nodes}
        self.is_whole_job = len(self.vertices) == len(job_graph.vertices)
        self._subtasks = [each for each in execution_graph.vertices() if each.job_vertex.id in region]

    def made_at(self, failure: TaskFailure) -> str | None:
        """The line of the program that made the operator that failed."""
        if failure.made_at is not None:
            return failure.made_at
        nodes = [node for vertex in self.vertices if vertex.id == failure.vertex for node in vertex.nodes]
        return next((node.made_at for node in nodes if node.name == failure.operator), None)

    def transition(self, state: ExecutionState) -> None:
        """Take every subtask that has not ended to `state`."""
        for subtask in self._subtasks:
            if not subtask.state.is_terminal:
                subtask.current.transition_to(state, wall_clock_ms())

    def start_over(self) -> None:
        """Fail the attempts that have not ended, and schedule a new one of every subtask."""
        self.transition(ExecutionState.FAILED)
        for subtask in self._subtasks:
            subtask.new_attempt().transition_to(ExecutionState.SCHEDULED, wall_clock_ms())
