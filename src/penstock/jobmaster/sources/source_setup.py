"""What a source's coordinator knows about the job it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import JobExecutionError
from penstock.jobmaster.failure_history import error_of
from penstock.jobmaster.sources.watermark_alignment import AlignmentGroups
from penstock.runtime.failure import describe_failure
from penstock.runtime.operators.base import TaskInfo


@dataclass(frozen=True)
class SourceSetup:
    """Which source it is, where it may put files, and within which limits it is read."""

    vertex: int
    operator_id: str
    name: str
    """As the user gave it."""
    parallelism: int
    max_parallelism: int
    folder: Path
    """For what is needed while the job runs."""
    storage: str
    """Path or URI for what checkpoints refer to."""
    on_change: Callable[[], None]
    """Called from any thread when there may be something new."""
    is_cancelled: Callable[[], bool] = lambda: False
    job_id: str = ""
    job_name: str = ""
    job_parameters: dict[str, str] = field(default_factory=dict)
    is_batch: bool = False
    """True if everything is read in one epoch."""
    can_restart: bool = True
    """True if the job may go back to an earlier position."""
    config: Configuration = field(default_factory=Configuration)
    alignment_groups: AlignmentGroups = field(default_factory=AlignmentGroups)
    made_at: str | None = None
    """The line of the program that made it."""

    @property
    def max_records(self) -> int | None:
        """The most records that a subtask reads in one epoch."""
        return None if self.is_batch else self.config.get_optional(keys.EPOCH_MAX_RECORDS)

    def task(self, subtask: int, attempt: int = 0) -> TaskInfo:
        return TaskInfo(
            self.job_id,
            self.job_name,
            self.name,
            subtask,
            self.parallelism,
            self.max_parallelism,
            attempt,
            self.job_parameters,
        )

    def error_of(self, failure: BaseException, subtask: int = 0) -> JobExecutionError:
        """A failure of the user's code in the driver, reported as one in a subtask is."""
        if isinstance(failure, JobExecutionError):
            return failure
        described = describe_failure(failure, self.vertex, self.name, subtask, self.parallelism)
        error = error_of(described, self.job_id, self.job_name, self.made_at)
        error.__cause__ = failure
        return error
