"""The operators of one task, linked to each other and to the channels that leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from penstock.common.typeinfo import RowTypeInfo
from penstock.datastream.declared_types import row_shape_of
from penstock.graph.descriptions import (
    FilterDescription,
    FlatMapDescription,
    MapDescription,
    ProcessDescription,
    SourceDescription,
    WatermarksDescription,
)
from penstock.graph.job_graph import JobEdge, JobGraph, JobVertex
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.chain_compiler import MOST_NESTED, FusedOperator, is_fusable
from penstock.runtime.combining import combines_on_the_way, combining_edge, takes_accumulators, takes_session_parts
from penstock.runtime.element_copies import Copy, as_it_is, copied, copies_of_type
from penstock.runtime.guarded_operator import GuardedOperator
from penstock.runtime.latency import LatencyStats, LatencyTracking
from penstock.runtime.operators import build_operator
from penstock.runtime.operators.base import DriverReport, OperatorContext, StreamOperator, TaskInfo, close_all
from penstock.runtime.operators.watermarks import TimestampsAndWatermarksOperator
from penstock.runtime.outputs import (
    ChainTarget,
    ColumnMaker,
    DeclaredForm,
    EdgeTarget,
    OperatorOutput,
    Target,
    WithinOperatorTarget,
    declared_form,
)
from penstock.runtime.rows import Row
from penstock.runtime.sources import build_source_operator
from penstock.runtime.state.backends import MakeTable
from penstock.runtime.state.heap_table import HeapStateTable

if TYPE_CHECKING:
    from penstock.runtime.windowing.quick import QuickWindowOperator
    from penstock.runtime.windowing.sessions import SessionWindowOperator

_PASSING_ON = (FilterDescription, WatermarksDescription)
_MAKING_VALUES = (MapDescription, FlatMapDescription, ProcessDescription)
_CHAINED_FUNCTIONS = (*_MAKING_VALUES, *_PASSING_ON)


def _can_be_fused(node: StreamNode) -> bool:
    return node.on_error is None and is_fusable(node.operator)


class OperatorChain:
    """Builds the operators of a vertex from the last to the first, because each needs those that follow it.

    `operators` is in the order in which records pass. Rows that leave the task are appended to `ready`.
    """

    def __init__(
        self,
        job_graph: JobGraph,
        vertex: JobVertex,
        task: TaskInfo,
        clock: Callable[[], int],
        current_channel: Callable[[], tuple[int, int]],
        ready: list[Row],
        cached_files: dict[str, str],
        tables_of: Callable[[str], MakeTable] = lambda operator_id: HeapStateTable,
        latency: LatencyTracking | None = None,
    ) -> None:
        self._job_graph = job_graph
        self._vertex = vertex
        self._task = task
        self._clock = clock
        self._current_channel = current_channel
        self._ready = ready
        self._cached_files = cached_files
        self._tables_of = tables_of
        self._latency = latency
        self._copied: Copy = as_it_is if job_graph.reuses_objects else copied
        self.report = DriverReport()
        self.contexts: dict[str, OperatorContext] = {}
        self.operators: list[StreamOperator] = []
        self.entrances: dict[str, StreamOperator] = {}
        """By operator id: the operator that gets its records, unless it gets them within a generated loop."""
        self.exits: dict[str, OperatorOutput] = {}
        """By operator id: the output for its results, unless they stay within a generated loop."""
        self.edges: list[EdgeTarget] = []
        self._nodes = {node.id: node for node in vertex.nodes}
        self.head = self._build(vertex.head)

    def _build(self, node: StreamNode) -> StreamOperator:
        run = self._fusable_run(node)
        output = self._output_of(run[-1])
        if _can_be_fused(node):
            return self._add(
                FusedOperator([each.operator for each in run], [self._context(each) for each in run]),
                self.contexts[run[0].operator_id],
                output,
                run[-1].operator_id,
            )
        context = self._context(node)
        if isinstance(node.operator, SourceDescription):
            if node.operator.watermarks is not None and not node.operator.makes_watermarks_itself:
                watermarks = self._add(TimestampsAndWatermarksOperator(node.operator.watermarks), context, output)
                within, makes_columns = WithinOperatorTarget(watermarks), self._job_graph.exchanges_columns
                output = OperatorOutput([within], {}, None, as_it_is, as_it_is, makes_columns)
            return self._add(build_source_operator(node.operator), context, output)
        operator = build_operator(node.operator)
        if node.on_error is not None:
            return self._add(GuardedOperator(operator, node.on_error, self._declared_form(node)), context, output)
        if node is self._vertex.head and takes_session_parts(self._job_graph, self._vertex):
            cast("SessionWindowOperator", operator).takes_parts = True
        if node is self._vertex.head and takes_accumulators(self._job_graph, self._vertex):
            cast("QuickWindowOperator", operator).takes_accumulators = True
        return self._add(operator, context, output)

    def _add(
        self, operator: StreamOperator, context: OperatorContext, output: OperatorOutput, last: str | None = None
    ) -> StreamOperator:
        """`last`: the id of the last of several operators that run as one."""
        operator.setup(context, output)
        self.operators.insert(0, operator)
        self.entrances[context.operator_id] = operator
        self.exits.setdefault(last or context.operator_id, output)
        return operator

    def _fusable_run(self, node: StreamNode) -> list[StreamNode]:
        """`node` and the stateless operators after it that can share one loop: nothing else reads between them."""
        run = [node]
        while _can_be_fused(run[-1]):
            chained = [edge for edge in self._vertex.chained_edges if edge.source == run[-1].id]
            leaving = [edge for edge in self._job_graph.out_edges(self._vertex.id) if edge.source_node == run[-1].id]
            if leaving or len(chained) != 1 or chained[0].side_tag is not None:
                break
            following = self._nodes[chained[0].target]
            if row_shape_of(run[-1].output_type) is not None:
                break  # Its results must become rows first.
            nested = sum(isinstance(each.operator, FlatMapDescription) for each in run)
            if not _can_be_fused(following) or nested >= MOST_NESTED:
                break
            run.append(following)
        return run

    def _context(self, node: StreamNode) -> OperatorContext:
        context = OperatorContext(
            self._task,
            node.name,
            node.operator_id,
            self._clock,
            self.report,
            cached_files=self._cached_files,
            current_channel=self._current_channel,
            make_table=self._tables_of(node.operator_id),
            copied=self._copied,
            copied_result=self._copied_result_of(node),
            latency=None if self._latency is None else LatencyStats(self._latency),
            inlines_functions=self._job_graph.inlines_functions and node.on_error is None,
            takes_checkpoints=self._job_graph.takes_checkpoints,
        )
        self.contexts[node.operator_id] = context
        return context

    def _output_of(self, node: StreamNode) -> OperatorOutput:
        main: list[Target] = []
        side: dict[str, list[Target]] = {}
        for tag, target in self._targets_of(node):
            (main if tag is None else side.setdefault(tag, [])).append(target)
        result = self._copied_result_of(node)
        # Side outputs have other types.
        copies = as_it_is if result is as_it_is and not side else self._copied, result
        form = None if node.on_error is not None else self._declared_form(node)
        return OperatorOutput(main, side, form, *copies, self._job_graph.exchanges_columns)

    def _copied_result_of(self, node: StreamNode) -> Copy:
        return as_it_is if self._copied is as_it_is else copies_of_type(node.output_type)

    def _declared_form(self, node: StreamNode) -> DeclaredForm | None:
        """Converts the elements that `node` emits to its declared type; None if they stay as they are.

        As in PyFlink, a function gets exactly what the function before it in the chain returned, only that rows are
        rows for every function. Types apply where a chain of functions ends, and after timestamps and watermarks were
        assigned.
        """
        if isinstance(node.operator, SourceDescription):
            is_row = isinstance(node.output_type, RowTypeInfo)
            return declared_form(node.output_type) if is_row and not node.operator.has_declared_form else None
        if isinstance(node.operator, _PASSING_ON) and node is self._vertex.head:
            return None
        if isinstance(node.operator, WatermarksDescription) and self._follows_a_function(node):
            return declared_form(node.output_type)
        if not self._continues_in_a_function(node):
            return declared_form(node.output_type)
        return None if isinstance(node.operator, _PASSING_ON) else declared_form(row_shape_of(node.output_type))

    def _follows_a_function(self, node: StreamNode) -> bool:
        """True if `node` gets elements that a function of the user in the same chain made."""
        before = [self._nodes[edge.source] for edge in self._vertex.chained_edges if edge.target == node.id]
        return any(
            isinstance(each.operator, _MAKING_VALUES)
            or (isinstance(each.operator, FilterDescription) and self._follows_a_function(each))
            for each in before
        )

    def _continues_in_a_function(self, node: StreamNode) -> bool:
        """True if one function of the user in the same chain, and nothing else, gets the elements that `node` emits."""
        chained = [edge for edge in self._vertex.chained_edges if edge.source == node.id]
        leaves = any(edge.source_node == node.id for edge in self._job_graph.out_edges(self._vertex.id))
        if leaves or len(chained) != 1 or chained[0].side_tag is not None:
            return False
        return isinstance(self._nodes[chained[0].target].operator, _CHAINED_FUNCTIONS)

    def _targets_of(self, node: StreamNode) -> Iterator[tuple[str | None, Target]]:
        for chained in self._vertex.chained_edges:
            if chained.source == node.id:
                yield chained.side_tag, ChainTarget(self._build(self._nodes[chained.target]))
        for edge in self._job_graph.out_edges(self._vertex.id):
            if edge.source_node == node.id:
                target = self._edge_target(edge)
                self.edges.append(target)
                yield edge.side_tag, target

    def _edge_target(self, edge: JobEdge) -> EdgeTarget:
        receiver = self._job_graph.vertices[edge.target_vertex]
        parallelism = receiver.parallelism, receiver.max_parallelism
        sender = edge, self._task.subtask, self._task.parallelism
        target: EdgeTarget
        if combines_on_the_way(self._job_graph, receiver):
            target = combining = combining_edge(receiver, *sender, *parallelism, self._ready)
            combining.column_maker = ColumnMaker() if self._job_graph.exchanges_columns else None
            combining.scope.inlines = self._job_graph.inlines_functions
        else:
            target = EdgeTarget(*sender, *parallelism, self._ready)
        if not self._job_graph.inlines_functions:
            target.dealer.call_functions()
        return target

    def each(self, step: Callable[[StreamOperator], None]) -> None:
        """Call `step` for every operator, first to last. What one emits is processed before the next one's turn."""
        for operator in self.operators:
            step(operator)
            operator.output.flush()

    def open(self) -> None:
        # Last to first, as in Flink: an operator may emit as soon as it is open.
        for operator in reversed(self.operators):
            operator.open()
        for context in self.contexts.values():
            for service in context.timer_services.values():
                service.restore()

    def close(self) -> None:
        """Close all operators, even if one fails to close; then raise the first failure."""
        close_all(self.operators)

    # --- what continues in another process ---------------------------------------------------------------------------

    def memory(self) -> Any:
        """What the operators and channels need to continue, apart from state."""
        return (
            [(operator.current_watermark, operator.task_memory()) for operator in self.operators],
            [edge.memory() for edge in self.edges],
        )

    def restore_memory(self, memory: Any) -> None:
        operators, edges = memory
        for operator, (watermark, task_memory) in zip(self.operators, operators, strict=True):
            operator.current_watermark = watermark
            if task_memory is not None:
                operator.restore_task_memory(task_memory)
        for edge, edge_memory in zip(self.edges, edges, strict=True):
            edge.restore(edge_memory)

    def restore_watermarks(self) -> None:
        """Give timer services, which `open` has made, the watermarks that `restore_memory` gave their operators."""
        for operator in self.operators:
            for service in operator.context.timer_services.values():
                service.current_watermark = operator.current_watermark
