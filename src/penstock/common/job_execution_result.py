"""What a finished job leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.common.job_id import JobID

__all__ = ["JobExecutionResult"]


@dataclass(frozen=True)
class JobExecutionResult:
    """The id, the run time and the accumulators of a job that has finished.

    >>> from penstock.datastream.connectors import DiscardingSink
    >>> _ = env.from_collection([1, 2]).sink_to(DiscardingSink())
    >>> env.execute("nothing").get_net_runtime() >= 0
    True
    """

    job_id: JobID
    net_runtime_ms: int
    accumulators: dict[str, Any] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return self.job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the job's start to its end."""
        return self.net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of one accumulator, None if the job had none of that name."""
        return self.accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators of the job, by name."""
        return dict(self.accumulators)

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self.job_id} has finished.",
            f"Job Runtime: {self.net_runtime_ms} ms",
        ]
        if self.accumulators:
            lines.append("Accumulator Results:")
            lines += [f"- {name}: {value}" for name, value in self.accumulators.items()]
        return "\n".join(lines)
