"""The handle of a job that was started."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus

__all__ = ["JobClient"]


class JobClient(ABC):
    """The handle of one job, as `execute_async` returns it. Answers are futures; `result()` waits for them.

    >>> _ = env.from_collection([1, 2]).filter(lambda number: number > 2).print()
    >>> client = env.execute_async("in the background")
    >>> client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    True
    """

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The id of the job, which commands and checkpoints know it by."""

    @property
    @abstractmethod
    def job_name(self) -> str:
        """The name of the job: the one given to `execute_async`, or the default."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """What the job does now: CREATED, RUNNING, FINISHED and so on."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stop the job now, without a savepoint."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stop the job and keep its state; the answer is the savepoint's path.

        With `advance_to_end_of_event_time` all windows and event-time timers fire first: for a job that ends for good.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keep the state of the job, which continues; the answer is the savepoint's path."""

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators of the job, by name."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result once the job has finished; waiting for it raises if the job failed or was cancelled."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.job_name!r}, job_id={self.get_job_id()})"
