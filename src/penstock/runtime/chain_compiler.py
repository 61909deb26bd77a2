"""Fuses runs of map, flat_map and filter into one generated Python loop.

The loop has local variables only and no dispatch per record; small functions are not even called
(`penstock.runtime.inlining`). The source is kept (`FusedOperator.sources`) so that it can be read, and shows in
tracebacks. A line of it belongs to one operator: that is how a failure finds the operator and the record without any
bookkeeping while all goes well. If a loop with inlined functions fails, the batch runs once more with calls, so that
the user's own frames are in the traceback.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import IMMUTABLE_TYPES, Copy, as_it_is, copied_unless_tuple
from penstock.runtime.generated_loop import GENERATED_FILE_PREFIX, GeneratedLoop, LoopScope, Source
from penstock.runtime.inlining import ONE_AT_A_TIME
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from penstock.runtime.operators.user_function import UserFunctionOperator
from penstock.runtime.outputs import Attempts
from penstock.runtime.retention import keeps_nothing

if TYPE_CHECKING:
    from penstock.runtime.column_functions import ColumnChain
    from penstock.runtime.columns import Columns

FUSED_FILE_PREFIX = GENERATED_FILE_PREFIX + "chain "

_OPERATORS: dict[type[OperatorDescription], Callable[[Any], UserFunctionOperator]] = {
    MapDescription: MapOperator,
    FlatMapDescription: FlatMapOperator,
    FilterDescription: FilterOperator,
}


MOST_NESTED = 15
"""flat_maps in one loop at most: each is a loop within a loop, and Python allows 20."""


def is_fusable(description: OperatorDescription) -> bool:
    """True for plain functions; one that may use keyed state needs its key set, which the loop does not do."""
    return type(description) in _OPERATORS and not description.is_keyed


@dataclass(frozen=True)
class CallSite:
    """A line of generated code that calls a user function."""

    operator: int
    variable: str
    """The local variable that holds the record."""


@dataclass(frozen=True)
class FusedSource(Source):
    call_sites: dict[int, CallSite]
    """By line number."""


@dataclass(frozen=True)
class Step:
    """An operator of the loop."""

    kind: type[OperatorDescription]
    function: Callable[[Any], Any]
    copied: Copy
    """Makes a copy of what the function gives."""


class _LoopBody:
    """The lines of a loop, as they grow from operator to operator."""

    def __init__(self, lines: list[str], scope: LoopScope) -> None:
        self.lines = lines
        self.scope = scope
        self.sites: dict[int, CallSite] = {}
        self.indent = "        "
        self.current = "v0"
        """The variable that holds the record."""

    def add(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def call(self, text: str, operator: int) -> None:
        """Add a line in which the operator may fail."""
        self.add(text)
        self.sites[len(self.lines)] = CallSite(operator, self.current)

    def add_step(self, at: int, step: Step) -> None:
        if step.kind is MapDescription:
            result = self.scope.call(f"f{at}", step.function, self.current)
            self.call(f"v{at + 1} = {result}", at)
            self.current = f"v{at + 1}"
            self._hand_over(at, step, _variable_items(result))
        elif step.kind is FilterDescription:
            self.call(f"if not ({self.scope.call(f'f{at}', step.function, self.current)}):", at)
            self.add("    continue")
            self._hand_over(at, step, None)
        else:
            self._add_flat_map(at, step)
            self.indent += "    "
            self.current = f"v{at + 1}"
            self._hand_over(at, step, None)

    def _add_flat_map(self, at: int, step: Step) -> None:
        yielded = self.scope.yielded(f"f{at}", step.function, self.current)
        if yielded is not None:
            self.call(f"for v{at + 1} in ({', '.join(yielded)},):", at)
            return
        self.call(f"r{at} = {self.scope.call(f'f{at}', step.function, self.current)}", at)
        self.add(f"if r{at} is None:")
        self.add("    continue")
        self.call(f"for v{at + 1} in r{at}:", at)

    def _hand_over(self, at: int, step: Step, variable_items: list[int] | None) -> None:
        """Make what an operator emits independent of it (`penstock.runtime.element_copies`)."""
        gives_one = step.kind is not FlatMapDescription
        is_immutable_tuple = variable_items == [] or (variable_items and step.copied is copied_unless_tuple)
        if step.copied is as_it_is or is_immutable_tuple or (gives_one and keeps_nothing(step.function)):
            return
        self.scope.locals |= {"type_of": type, "tuple_type": tuple, "immutable_types": IMMUTABLE_TYPES}
        self.scope.locals["copied"] = step.copied
        current = self.current
        copying = f"    {current} = copied({current})"
        # Most are immutable, or tuples of such, which should not cost a call.
        if step.copied is copied_unless_tuple:
            self.add(f"if type_of({current}) is not tuple_type:")
            self.call(copying, at)
            return
        if variable_items is not None:
            are_mutable = (f"type_of({current}[{item}]) not in immutable_types" for item in variable_items)
            self.add(f"if {' or '.join(are_mutable)}:")
            self.call(copying, at)
            return
        self.add(f"if type_of({current}) is tuple_type:")
        self.add(f"    for item in {current}:")
        self.add("        if type_of(item) not in immutable_types:")
        self.call(f"        {copying}", at)
        self.add("            break")
        self.add(f"elif type_of({current}) not in immutable_types:")
        self.call(copying, at)


def _variable_items(expression: str) -> list[int] | None:
    """Which items of a tuple are not constants; None if the expression is not a tuple, or one of unknown length."""
    with ONE_AT_A_TIME:
        tree = ast.parse(expression, mode="eval").body
    if not isinstance(tree, ast.Tuple) or any(isinstance(each, ast.Starred) for each in tree.elts):
        return None
    return [at for at, each in enumerate(tree.elts) if not isinstance(each, ast.Constant)]


def generate(steps: Sequence[Step], with_timestamps: bool, name: str, scope: LoopScope) -> FusedSource:
    """The source of `fused(values, timestamps)`, which returns the output's values and timestamps.

    `scope` takes the names that the source refers to.
    """
    only_maps = all(step.kind is MapDescription for step in steps)
    each_has_timestamp = with_timestamps and not only_maps
    lines = ["def fused(values, timestamps):", "    out = []", "    append = out.append"]
    if each_has_timestamp:
        scope.locals["zip"] = zip
        lines += ["    out_timestamps = []", "    append_timestamp = out_timestamps.append"]
        lines += ["    for v0, timestamp in zip(values, timestamps):"]
    else:
        lines += ["    for v0 in values:"]
    body = _LoopBody(lines, scope)
    for at, step in enumerate(steps):
        body.add_step(at, step)
    body.add(f"append({body.current})")
    if each_has_timestamp:
        body.add("append_timestamp(timestamp)")
    lines.append(f"    return out, {'out_timestamps' if each_has_timestamp else 'timestamps'}")
    suffix = (" with timestamps" if with_timestamps else "") + ("" if scope.inlines else ", calling")
    return FusedSource("\n".join(lines) + "\n", f"{FUSED_FILE_PREFIX}{name}{suffix}>", body.sites)


class FusedOperator(StreamOperator):
    """Several stateless operators in one loop; each keeps its own context, function and life."""

    def __init__(self, descriptions: Sequence[OperatorDescription], contexts: Sequence[OperatorContext]) -> None:
        self.parts = [_OPERATORS[type(each)](each) for each in descriptions]
        self.contexts = list(contexts)
        self._steps = [
            Step(type(each), part.user_function.call, context.copied_result)
            for each, part, context in zip(descriptions, self.parts, contexts, strict=True)
        ]
        self._inlines_functions = all(context.inlines_functions for context in self.contexts)
        self._compiled: dict[bool, GeneratedLoop] = {}
        self._column_attempts = Attempts()
        self.sources: dict[str, FusedSource] = {}

    def setup(self, context: OperatorContext, output: Any) -> None:
        super().setup(context, output)
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
        for part in self.parts:
            part.close()

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
        with_timestamps = batch.timestamps is not None
        fused = self._compiled.get(with_timestamps)
        if fused is None:
            fused = self._compiled[with_timestamps] = self._compile(with_timestamps, self._inlines_functions)
        try:
            values, timestamps = fused.run(batch.values, batch.timestamps)
        except Exception:
            if fused.has_inlined:
                self._compile(with_timestamps, inlines=False).run(batch.values, batch.timestamps)
            raise  # If it did not happen again, it is told from where it was seen.
        self.output.collect_batch(values, timestamps)

    def takes_columns(self) -> bool:
        return self._on_columns is not None

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        from penstock.runtime.column_functions import NotInColumnsError

        if self._on_columns is not None and self._column_attempts.is_due():
            try:
                results = self._on_columns.run(columns)
            except NotInColumnsError:
                self._column_attempts.failed()
            else:
                self._column_attempts.succeeded()
                if len(results):
                    self.output.collect_columns(results)
                return
        super().process_columns(columns, input_index)

    @cached_property
    def _on_columns(self) -> ColumnChain | None:
        """All of the functions on columns; None if some must have their elements one by one."""
        if not self._inlines_functions:
            return None
        from penstock.runtime.column_functions import column_chain

        return column_chain([(step.kind, step.function) for step in self._steps])

    def generated_sources(self) -> list[FusedSource]:
        """The loop in both forms, if there are two: which one runs is known when the first records come."""
        inlines = self._inlines_functions
        both = [self._generate(with_timestamps, LoopScope(inlines)) for with_timestamps in (False, True)]
        return both[:1] if both[0].text == both[1].text else both

    def _generate(self, with_timestamps: bool, scope: LoopScope) -> FusedSource:
        return generate(self._steps, with_timestamps, " -> ".join(c.operator_name for c in self.contexts), scope)

    def _compile(self, with_timestamps: bool, inlines: bool) -> GeneratedLoop:
        scope = LoopScope(inlines)
        source = self._generate(with_timestamps, scope)
        self.sources[source.filename] = source
        return scope.compile(source)
