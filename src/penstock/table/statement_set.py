"""Several INSERT statements that are one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.exceptions import InvalidProgramError
from penstock.table.compiled_plan import CompiledPlan
from penstock.table.table import Table
from penstock.table.table_descriptor import TableDescriptor
from penstock.table.table_pipeline import TablePipeline
from penstock.table.table_result import TableResult

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment

__all__ = ["StatementSet"]


class StatementSet:
    """Several INSERT statements that are one job: what they share is computed once.

    >>> from penstock.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> statements = t_env.create_statement_set()
    """

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._statements: list[str] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add a table with the table that it is to be written into."""
        self._statements.append(table_pipeline._statement)
        return self

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT statement."""
        self._t_env._check_insert(stmt)
        self._statements.append(stmt)
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Add a table and where it is to be written."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def attach_as_datastream(self) -> None:
        """Add the statements to the stream environment's own job, which `env.execute()` starts."""
        self._t_env._attach(self._taken())

    def explain(self, *extra_details: int) -> str:
        """The plan of the job."""
        return self._t_env._explain(self._statements, extra_details)

    def print_explain(self, *extra_details: int) -> None:
        """Print the plan of the job."""
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Start the job. The set is empty afterwards."""
        return self._t_env._execute_inserts(self._taken())

    def compile_plan(self) -> CompiledPlan:
        """The plan of the job, which can be kept and executed later."""
        return self._t_env._compile(self._statements)

    def _taken(self) -> list[str]:
        if not self._statements:
            raise InvalidProgramError("the statement set is empty; add statements with add_insert_sql(...) first")
        taken, self._statements = self._statements, []
        return taken
