"""Fuses runs of map, flat_map and filter into one generated Python loop.

The loop has local variables only and no dispatch per record; small functions are not even called
(`penstock.runtime.inlining`). The source is kept (`FusedOperator.sources`) so that it can be read, and shows in
tracebacks. A line of it belongs to one operator: that is how a failure finds the operator and the record without any
bookkeeping while all goes well. If a loop with inlined functions fails, the batch runs once more with calls, so that
the user's own frames are in the traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.generated_loop import GENERATED_FILE_PREFIX, GeneratedLoop, LoopScope, Source
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from penstock.runtime.operators.user_function import UserFunctionOperator

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


Step = tuple[type[OperatorDescription], Callable[[Any], Any]]
"""A kind of operator, and its function."""


def generate(steps: Sequence[Step], with_timestamps: bool, name: str, scope: LoopScope) -> FusedSource:
    """The source of `fused(values, timestamps)`, which returns the output's values and timestamps.

    `scope` takes the names that the source refers to.
    """
    only_maps = all(kind is MapDescription for kind, _ in steps)
    each_has_timestamp = with_timestamps and not only_maps
    lines = ["def fused(values, timestamps):", "    out = []", "    append = out.append"]
    if each_has_timestamp:
        scope.locals["zip"] = zip
        lines += ["    out_timestamps = []", "    append_timestamp = out_timestamps.append"]
        lines += ["    for v0, timestamp in zip(values, timestamps):"]
    else:
        lines += ["    for v0 in values:"]
    sites: dict[int, CallSite] = {}
    indent, current = "        ", "v0"

    def call(text: str, operator: int) -> None:
        lines.append(indent + text)
        sites[len(lines)] = CallSite(operator, current)

    for at, (kind, function) in enumerate(steps):
        if kind is MapDescription:
            call(f"v{at + 1} = {scope.call(f'f{at}', function, current)}", at)
            current = f"v{at + 1}"
        elif kind is FilterDescription:
            call(f"if not ({scope.call(f'f{at}', function, current)}):", at)
            lines.append(f"{indent}    continue")
        else:
            yielded = scope.yielded(f"f{at}", function, current)
            if yielded is not None:
                call(f"for v{at + 1} in ({', '.join(yielded)},):", at)
            else:
                call(f"r{at} = {scope.call(f'f{at}', function, current)}", at)
                lines.append(f"{indent}if r{at} is None:")
                lines.append(f"{indent}    continue")
                call(f"for v{at + 1} in r{at}:", at)
            indent += "    "
            current = f"v{at + 1}"
    lines.append(f"{indent}append({current})")
    if each_has_timestamp:
        lines.append(f"{indent}append_timestamp(timestamp)")
    lines.append(f"    return out, {'out_timestamps' if each_has_timestamp else 'timestamps'}")
    suffix = (" with timestamps" if with_timestamps else "") + ("" if scope.inlines else ", calling")
    return FusedSource("\n".join(lines) + "\n", f"{FUSED_FILE_PREFIX}{name}{suffix}>", sites)


class FusedOperator(StreamOperator):
    """Several stateless operators in one loop; each keeps its own context, function and life."""

    def __init__(self, descriptions: Sequence[OperatorDescription], contexts: Sequence[OperatorContext]) -> None:
        self.parts = [_OPERATORS[type(each)](each) for each in descriptions]
        self.contexts = list(contexts)
        self._steps: list[Step] = [
            (type(each), part.user_function.call) for each, part in zip(descriptions, self.parts, strict=True)
        ]
        self._compiled: dict[bool, GeneratedLoop] = {}
        self.sources: dict[str, FusedSource] = {}

    def setup(self, context: OperatorContext, output: Any) -> None:
        super().setup(context, output)
        for part, own in zip(self.parts, self.contexts, strict=True):
            part.setup(own, output)

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
            fused = self._compiled[with_timestamps] = self._compile(with_timestamps, inlines=True)
        try:
            values, timestamps = fused.run(batch.values, batch.timestamps)
        except Exception:
            if fused.has_inlined:
                self._compile(with_timestamps, inlines=False).run(batch.values, batch.timestamps)
            raise  # If it did not happen again, it is told from where it was seen.
        self.output.collect_batch(values, timestamps)

    def generated_sources(self) -> list[FusedSource]:
        """The loop in both forms, if there are two: which one runs is known when the first records come."""
        both = [self._generate(with_timestamps, LoopScope()) for with_timestamps in (False, True)]
        return both[:1] if both[0].text == both[1].text else both

    def _generate(self, with_timestamps: bool, scope: LoopScope) -> FusedSource:
        return generate(self._steps, with_timestamps, " -> ".join(c.operator_name for c in self.contexts), scope)

    def _compile(self, with_timestamps: bool, inlines: bool) -> GeneratedLoop:
        scope = LoopScope(inlines)
        source = self._generate(with_timestamps, scope)
        self.sources[source.filename] = source
        return scope.compile(source)
