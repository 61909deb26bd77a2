"""The states a job goes through."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """What a job is doing. A terminal state is final; a SUSPENDED job may continue elsewhere.

    >>> JobStatus.RESTARTING.is_terminal_state(), JobStatus.SUSPENDED.is_globally_terminal_state()
    (False, False)
    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9
    INITIALIZING = 10

    def is_globally_terminal_state(self) -> bool:
        """True if the job is over for good, wherever it runs."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """True if this process will not continue the job."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
