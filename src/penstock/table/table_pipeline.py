"""A table with the table that it is to be written into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.table.compiled_plan import CompiledPlan
from penstock.table.table_result import TableResult

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment

__all__ = ["TablePipeline"]


class TablePipeline:
    """A table with the table that it is to be written into, as `table.insert_into(...)` gives it.

    >>> TablePipeline.__name__
    'TablePipeline'
    """

    def __init__(self, statement: str, t_env: TableEnvironment) -> None:
        self._statement = statement
        self._t_env = t_env

    def execute(self) -> TableResult:
        """Start the job."""
        return self._t_env._execute_inserts([self._statement])

    def explain(self, *extra_details: int) -> str:
        """The plan of the job."""
        return self._t_env._explain([self._statement], extra_details)

    def print_explain(self, *extra_details: int) -> None:
        """Print the plan of the job."""
        print(self.explain(*extra_details))

    def compile_plan(self) -> CompiledPlan:
        """The plan of the job, which can be kept and executed later."""
        return self._t_env._compile([self._statement])
