"""Fuses runs of map, flat_map and filter into one generated Python loop.

The loop has only local variables and no dispatch per record. Small functions are not even called
(`penstock.runtime.inlining`). Tracebacks show the source of the loop. Each line that can fail belongs to one operator,
so the line number of a failure is enough to find the operator, its record and the user's own lines
(`penstock.runtime.call_sites`), and nothing needs to be tracked during normal processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from penstock.common.own_copies import own_copy
from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.combining import AlignedCombiner
from penstock.runtime.fused_loop import Step, generate, generate_combining
from penstock.runtime.generated_loop import GeneratedLoop, LoopScope, Source
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators.base import OperatorContext, StreamOperator, close_all
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from penstock.runtime.operators.user_function import UserFunctionOperator
from penstock.runtime.outputs import Attempts, DeclaredForm, OperatorOutput

if TYPE_CHECKING:
    from penstock.runtime.column_functions import ColumnChain
    from penstock.runtime.columns import Columns

_OPERATORS: dict[type[OperatorDescription], Callable[[Any], UserFunctionOperator]] = {
    MapDescription: MapOperator,
    FlatMapDescription: FlatMapOperator,
    FilterDescription: FilterOperator,
}


MOST_NESTED = 15
"""How many flat_maps one loop may have: each is a nested loop, and Python allows 20 nested blocks."""


def is_fusable(description: OperatorDescription) -> bool:
    """True for map, flat_map and filter, unless they are keyed: the loop does not set the current key."""
    return type(description) in _OPERATORS and not description.is_keyed


class FusedOperator(StreamOperator):
    """Several stateless operators in one loop; each keeps its own context, function and lifecycle.

    If the results are combined before the exchange, the loop does that as well.
    """

    def __init__(self, descriptions: Sequence[OperatorDescription], contexts: Sequence[OperatorContext]) -> None:
        self.parts = [_OPERATORS[type(each)](own_copy(each)) for each in descriptions]
        self.contexts = list(contexts)
        self.steps = [
            Step(type(each), part.user_function.call, context.copied_result, part)
            for each, part, context in zip(descriptions, self.parts, contexts, strict=True)
        ]
        self.inlines_functions = all(context.inlines_functions for context in self.contexts)
        self._loops: dict[int, _Loops] = {}
        """By the number of their first step."""
        self._column_attempts = Attempts()
        self._done_on_columns = 0
        """How many steps ran on columns in the last attempt that did not get through all of them."""
        self.combiner: AlignedCombiner | None = None
        self._form: DeclaredForm | None = None
        """The declared form of the elements that go into the combiner."""

    def setup(self, context: OperatorContext, output: Any) -> None:
        super().setup(context, output)
        if isinstance(output, OperatorOutput) and isinstance(output.only_target, AlignedCombiner):
            self.combiner, self._form = output.only_target, output.form
        for part, own in zip(self.parts, self.contexts, strict=True):
            part.setup(own, output)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        for context in self.contexts[1:]:
            context.note_latency(marker)
        super().process_latency_marker(marker)

    def open(self) -> None:
        for part in self.parts:
            part.open()

    def close(self) -> None:
        close_all(self.parts)

    def snapshot_state(self, checkpoint_id: int) -> None:
        for part in self.parts:
            part.snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for part in self.parts:
            part.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        for part in self.parts:
            part.notify_checkpoint_aborted(checkpoint_id)

    def waits_for_checkpoint(self) -> bool:
        return any(part.waits_for_checkpoint() for part in self.parts)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        self._process(batch, self._loops_from(0))

    def _process(self, batch: Batch, loops: _Loops) -> None:
        combiner = self.combiner
        if combiner is None or batch.timestamps is None or not combiner.takes(batch.timestamps):
            self._collect(batch, loops)
            return
        combining = loops.combining
        if combining is None:
            self._collect(batch, loops)
            return
        made: int = combining.run(batch.values, batch.timestamps)
        cast(OperatorOutput, self.output).records_out += made
        combiner.combined(made)

    def _collect(self, batch: Batch, loops: _Loops) -> None:
        loop = loops.plain(with_timestamps=batch.timestamps is not None)
        values, timestamps = loop.run(batch.values, batch.timestamps)
        self.output.collect_batch(values, timestamps)

    def takes_columns(self) -> bool:
        return self._on_columns is not None

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        chain = self._on_columns
        if chain is None:
            super().process_columns(columns, input_index)
            return
        reach = len(chain) if len(chain) == len(self.steps) else chain.closed
        most = reach if self._column_attempts.is_due() else min(self._done_on_columns, reach)
        results, done = chain.run(columns, most)
        if done < most:
            self._column_attempts.failed()
            self._done_on_columns = done
        elif most == reach:
            self._column_attempts.succeeded()
        if done < len(self.steps) and done > chain.closed:
            # The other functions are called for one element after the other, and may change what these functions read.
            results, done = chain.run(columns, chain.closed)
        if not len(results):
            return
        # The combiner takes elements, not columns. Elements that already have their declared form go to it directly.
        has_form = self.combiner is not None and cast(OperatorOutput, self.output).have_form(results)
        if done == len(self.steps) and not has_form:
            self.output.collect_columns(results)
        else:
            self._process(results.batch(), self._loops_from(done))

    @cached_property
    def _on_columns(self) -> ColumnChain | None:
        """The functions that can run on columns, from the first one on; None if the first one cannot."""
        if not self.inlines_functions:
            return None
        from penstock.runtime.column_functions import column_chain

        return column_chain([(step.kind, step.function) for step in self.steps])

    def _loops_from(self, first: int) -> _Loops:
        if first not in self._loops:
            self._loops[first] = _Loops(self, first, None if first == len(self.steps) else self._form)
        return self._loops[first]

    def generated_sources(self) -> list[Source]:
        """All variants of the loop: the first records decide which of them runs."""
        return self._loops_from(0).sources()

    @property
    def name(self) -> str:
        return " -> ".join(context.operator_name for context in self.contexts)


class _Loops:
    """All variants of a fused operator's loop that begin with the same step."""

    def __init__(self, operator: FusedOperator, first: int, form: DeclaredForm | None) -> None:
        self._operator = operator
        self._first = first
        self._form = form
        """The declared form of the elements that go into the combiner; None if they need no conversion."""
        self._compiled: dict[bool, GeneratedLoop] = {}

    @cached_property
    def combining(self) -> GeneratedLoop | None:
        """The loop that also combines its results; None if there is no such loop."""
        scope = LoopScope()
        source = self._combining_source(scope)
        return None if source is None else scope.compile(source)

    def plain(self, with_timestamps: bool) -> GeneratedLoop:
        """The loop that returns its results."""
        if with_timestamps not in self._compiled:
            scope = LoopScope(self._operator.inlines_functions)
            self._compiled[with_timestamps] = scope.compile(self._plain_source(with_timestamps, scope))
        return self._compiled[with_timestamps]

    def sources(self) -> list[Source]:
        inlines = self._operator.inlines_functions
        both = [self._plain_source(with_timestamps, LoopScope(inlines)) for with_timestamps in (False, True)]
        combining = self._combining_source(LoopScope())
        return (both[:1] if both[0].text == both[1].text else both) + ([] if combining is None else [combining])

    def _plain_source(self, with_timestamps: bool, scope: LoopScope) -> Source:
        return generate(self._operator.steps, with_timestamps, self._operator.name, scope, self._first)

    def _combining_source(self, scope: LoopScope) -> Source | None:
        operator = self._operator
        if operator.combiner is None or not operator.inlines_functions:
            return None
        return generate_combining(operator.steps, operator.combiner, self._form, operator.name, scope, self._first)
