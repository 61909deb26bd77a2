"""The status of a job, and when it entered each."""

from __future__ import annotations

from penstock.common.clocks import wall_clock_ms
from penstock.common.job_status import JobStatus


class JobTimes:
    """Written by the job's thread and by `cancel`; read by any."""

    def __init__(self) -> None:
        self.started_ms = wall_clock_ms()
        self.ended_ms: int | None = None
        self.status = JobStatus.INITIALIZING
        self._entered_ms = {JobStatus.INITIALIZING: self.started_ms}

    def enter(self, status: JobStatus) -> None:
        if status is self.status:
            return
        self.status = status
        self._entered_ms[status] = wall_clock_ms()
        if status.is_globally_terminal_state():
            self.ended_ms = self._entered_ms[status]

    def entered_ms(self) -> dict[str, int]:
        return {status.name: self._entered_ms.get(status, 0) for status in JobStatus}
