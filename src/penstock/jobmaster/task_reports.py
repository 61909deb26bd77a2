"""What the subtasks of a job have reported so far: in its execution graph, as metrics, and as its history of epochs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from penstock.common.clocks import wall_clock_ms
from penstock.graph.execution_graph import ExecutionFacts, ExecutionGraph, ExecutionState
from penstock.jobmaster.epoch_history import EpochHistory, EpochReport
from penstock.jobmaster.execution.stage_executor import TaskDone
from penstock.jobmaster.flame_graphs import FlameGraphs
from penstock.jobmaster.metrics.job_metrics import JobMetrics
from penstock.runtime.protocol import TaskAck


class TaskReports:
    """Regions add to it, each in its own thread; requests read it."""

    def __init__(self, execution_graph: ExecutionGraph) -> None:
        self._execution_graph = execution_graph
        self._lock = threading.Lock()
        self.metrics = JobMetrics()
        self.epochs = EpochHistory(execution_graph.job_graph)
        self.flame_graphs = FlameGraphs()

    def sampled_vertices(self) -> frozenset[int]:
        return self.flame_graphs.wanted(wall_clock_ms())

    def acknowledged(self, acks: Sequence[TaskAck], state_size_of: Callable[[int, int], int]) -> None:
        """All subtasks have done an epoch. `state_size_of`: the bytes that a vertex's subtask is restored from."""
        vertices = self._execution_graph.job_vertices
        executions = [vertices[ack.vertex].subtasks[ack.subtask].current for ack in acks]
        with self._lock:
            for ack, execution in zip(acks, executions, strict=True):
                if execution.facts.is_provisional:
                    execution.facts = ExecutionFacts()
                _add(execution.facts, ack)
                if ack.handle is not None:
                    execution.facts.state_size = state_size_of(ack.vertex, ack.subtask)
        for ack, execution in zip(acks, executions, strict=True):
            if execution.state is ExecutionState.INITIALIZING:
                execution.transition_to(ExecutionState.RUNNING, ack.started_ms)
            if ack.outcome.is_finished and execution.state is ExecutionState.RUNNING:
                execution.transition_to(ExecutionState.FINISHED, ack.ended_ms)
            for operator_id, reports in ack.outcome.metrics.items():
                self.metrics.add(operator_id, ack.subtask, reports)
            self.flame_graphs.add(ack)

    def epoch_completed(self, report: EpochReport) -> None:
        state_size = None
        if report.is_checkpoint:
            vertices = [self._execution_graph.job_vertices[vertex] for vertex in report.region]
            state_size = sum(each.current.facts.state_size for vertex in vertices for each in vertex.subtasks)
        self.epochs.add(report, state_size)

    def note_done(self, done: Iterable[TaskDone]) -> None:
        """In the middle of a batch job, which is one epoch: what subtasks have done before it ends."""
        with self._lock:
            for each in done:
                facts = self._execution_graph.job_vertices[each.vertex].subtasks[each.subtask].current.facts
                if facts.epochs == 0:
                    facts.epochs, facts.is_provisional = 1, True
                    facts.records_in, facts.records_out = each.records_in, each.records_out


def _add(facts: ExecutionFacts, ack: TaskAck) -> None:
    """Add what a subtask has reported on an epoch to what is known of its attempt."""
    outcome = ack.outcome
    facts.host, facts.process = ack.host, ack.process
    facts.epochs += 1
    facts.records_in += outcome.records_in
    facts.records_out += outcome.records_out
    facts.bytes_in += outcome.bytes_in
    facts.bytes_out += outcome.bytes_out
    facts.busy_ms += max(0, ack.ended_ms - ack.started_ms)
    facts.watermark = outcome.watermark
