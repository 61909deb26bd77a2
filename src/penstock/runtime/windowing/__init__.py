"""Windows at run time: the general window operator, and faster ones for common cases."""

from __future__ import annotations

from penstock.datastream.windowing.assigner import check_trigger
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.windowing.aligned import AlignedWindowOperator
from penstock.runtime.windowing.evicting import EvictingWindowOperator
from penstock.runtime.windowing.operator import WindowOperator
from penstock.runtime.windowing.quick import ALIGNED, SESSIONS, fires_at_end
from penstock.runtime.windowing.sessions import SessionWindowOperator
from penstock.runtime.windowing.triggered import TriggeredWindowOperator


def build_window_operator(description: WindowDescription) -> StreamOperator:
    """The operator that runs `description`: the fastest one that gives the same results as the general one."""
    check_trigger(description.assigner, description.trigger)
    if description.evictor is not None:
        return EvictingWindowOperator(description)
    if not fires_at_end(description):
        is_aligned = type(description.assigner) in ALIGNED
        return TriggeredWindowOperator(description) if is_aligned else WindowOperator(description)
    if isinstance(description.assigner, SESSIONS):
        return SessionWindowOperator(description)
    return AlignedWindowOperator(description)
