"""Fuses runs of map, flat_map and filter into one generated Python loop.

The loop has local variables only and no dispatch per record. The source is kept (`FusedOperator.source`) so that it can
be read, and shows in tracebacks. A line of it belongs to one operator: that is how a failure finds the operator and the
record without any bookkeeping while all goes well.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from penstock.runtime.operators.user_function import UserFunctionOperator

FUSED_FILE_PREFIX = "<penstock chain "

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
class FusedSource:
    text: str
    filename: str
    call_sites: dict[int, CallSite]
    """By line number."""


def generate(kinds: Sequence[type[OperatorDescription]], with_timestamps: bool, name: str) -> FusedSource:
    """The source of `fused(values, timestamps)`, which returns the output's values and timestamps."""
    lines = ["def fused(values, timestamps):", "    out = []", "    append = out.append"]
    if with_timestamps:
        lines += ["    out_timestamps = []", "    append_timestamp = out_timestamps.append"]
        lines += ["    for v0, timestamp in zip(values, timestamps):"]
    else:
        lines += ["    for v0 in values:"]
    sites: dict[int, CallSite] = {}
    indent, current = "        ", "v0"

    def call(text: str, operator: int) -> None:
        lines.append(indent + text)
        sites[len(lines)] = CallSite(operator, current)

    for at, kind in enumerate(kinds):
        if kind is MapDescription:
            call(f"v{at + 1} = f{at}({current})", at)
            current = f"v{at + 1}"
        elif kind is FilterDescription:
            call(f"if not f{at}({current}):", at)
            lines.append(f"{indent}    continue")
        else:
            call(f"r{at} = f{at}({current})", at)
            lines.append(f"{indent}if r{at} is None:")
            lines.append(f"{indent}    continue")
            call(f"for v{at + 1} in r{at}:", at)
            indent += "    "
            current = f"v{at + 1}"
    lines.append(f"{indent}append({current})")
    if with_timestamps:
        lines.append(f"{indent}append_timestamp(timestamp)")
    lines.append(f"    return out, {'out_timestamps' if with_timestamps else 'None'}")
    suffix = " with timestamps" if with_timestamps else ""
    return FusedSource("\n".join(lines) + "\n", f"{FUSED_FILE_PREFIX}{name}{suffix}>", sites)


class FusedOperator(StreamOperator):
    """Several stateless operators in one loop; each keeps its own context, function and life."""

    def __init__(self, descriptions: Sequence[OperatorDescription], contexts: Sequence[OperatorContext]) -> None:
        self.parts = [_OPERATORS[type(each)](each) for each in descriptions]
        self.contexts = list(contexts)
        self._kinds = [type(each) for each in descriptions]
        self._compiled: dict[bool, Callable[..., Any]] = {}
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
        fused = self._compiled.get(with_timestamps) or self._compile(with_timestamps)
        values, timestamps = fused(batch.values, batch.timestamps)
        self.output.collect_batch(values, timestamps)

    def generated_sources(self) -> list[FusedSource]:
        """The loop in both forms: which one runs is known when the first records come."""
        return [self._generate(with_timestamps) for with_timestamps in (False, True)]

    def _generate(self, with_timestamps: bool) -> FusedSource:
        return generate(self._kinds, with_timestamps, " -> ".join(c.operator_name for c in self.contexts))

    def _compile(self, with_timestamps: bool) -> Callable[..., Any]:
        source = self._generate(with_timestamps)
        self.sources[source.filename] = source
        linecache.cache[source.filename] = (len(source.text), None, source.text.splitlines(True), source.filename)
        scope: dict[str, Any] = {f"f{at}": part.user_function.call for at, part in enumerate(self.parts)}
        # As default arguments the functions are locals of the loop, not globals.
        text = source.text.replace(
            "(values, timestamps):", "(values, timestamps, " + ", ".join(f"{f}={f}" for f in scope) + "):", 1
        )
        exec(compile(text, source.filename, "exec"), scope)
        compiled: Callable[..., Any] = scope["fused"]
        self._compiled[with_timestamps] = compiled
        return compiled
