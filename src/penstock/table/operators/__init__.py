"""The nodes of a compiled plan as operators of a stream: one module for each family of nodes."""

from penstock.table.operators.plan import PlanContext
from penstock.table.operators.sinks import TableSink
from penstock.table.operators.translation import translate

__all__ = ["PlanContext", "TableSink", "translate"]
