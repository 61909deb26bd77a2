"""A plan that can be kept and executed later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.table_result import TableResult

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment

__all__ = ["CompiledPlan"]


class CompiledPlan:
    """The plan of a job, which stays the same in later versions of the planner.

    >>> CompiledPlan.__name__
    'CompiledPlan'
    """

    def __init__(self, plan: str, t_env: TableEnvironment) -> None:
        self._plan = plan
        self._t_env = t_env

    def __str__(self) -> str:
        return self._plan

    def as_json_string(self) -> str:
        """The plan as JSON."""
        return self._plan

    def as_smile_bytes(self) -> bytes:
        """Not supported: Flink's binary form of a plan."""
        raise UnsupportedFeatureError("CompiledPlan.as_smile_bytes: plans are written as JSON; use as_json_string")

    def write_to_file(self, file: str | Path, ignore_if_exists: bool = False) -> None:
        """Write the plan into a file; an error if it exists, unless that is to be ignored."""
        path = Path(file)
        if path.exists():
            if ignore_if_exists:
                return
            raise FileExistsError(f"there is a file {path} already; remove it, or set ignore_if_exists")
        path.write_text(self._plan, encoding="utf-8")

    def get_flink_version(self) -> str:
        """The version of Flink's planner that has made the plan."""
        return str(json.loads(self._plan)["flinkVersion"])

    def print_json_string(self) -> None:
        """Print the plan as JSON."""
        print(self._plan)

    def execute(self) -> TableResult:
        """Start the job."""
        return self._t_env._execute_plan(json.loads(self._plan))

    def explain(self, *extra_details: int) -> str:
        """Not supported: the plan of a plan."""
        raise UnsupportedFeatureError("CompiledPlan.explain: explain the statement; as_json_string() shows the plan")

    def print_explain(self, *extra_details: int) -> None:
        """Not supported: the plan of a plan."""
        print(self.explain(*extra_details))
