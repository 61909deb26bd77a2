"""Windows at run time: the general window operator, and quicker ones for the common cases."""

from __future__ import annotations

from penstock.graph.descriptions import WindowDescription
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.windowing.evicting import EvictingWindowOperator
from penstock.runtime.windowing.operator import WindowOperator


def build_window_operator(description: WindowDescription) -> StreamOperator:
    """The operator that runs `description`."""
    if description.evictor is not None:
        return EvictingWindowOperator(description)
    return WindowOperator(description)
