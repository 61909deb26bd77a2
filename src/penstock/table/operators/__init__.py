"""The nodes of a compiled plan as operators of a stream: one module for each family of nodes."""

from penstock.table.operators.translation import PlanContext, TableSink, translate

__all__ = ["PlanContext", "TableSink", "translate"]
