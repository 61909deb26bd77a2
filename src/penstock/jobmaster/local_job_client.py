"""The handle of a job whose job master runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from penstock.common.completable_future import CompletableFuture, interruptible_result
from penstock.common.exceptions import JobExecutionError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.sinks.job_output import CollectedValues


class LocalJobClient(JobClient):
    """Runs a job master in a thread."""

    def __init__(self, master: JobMaster) -> None:
        self.master = master
        self._ended: Future[JobExecutionResult] = Future()
        self._result: Future[JobExecutionResult] = Future()
        """The same as `_ended`, but later: once it is set, the job's end is noted everywhere."""
        self._thread = threading.Thread(target=self._run, name=f"job-{master.job_id}", daemon=True)

    def __repr__(self) -> str:
        return f"<LocalJobClient of job {self.master.name!r} ({self.master.job_id}), {self.master.status.name}>"

    def start(self) -> LocalJobClient:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self._ended.set_result(self._run_master())
            self._result.set_result(self._ended.result())
        except BaseException as failure:  # Raised where the result is waited for
            if not self._ended.done():
                self._ended.set_exception(failure)
            self._result.set_exception(failure)

    def _run_master(self) -> JobExecutionResult:
        result = self.master.run()
        job_id, name = str(self.master.job_id), self.master.job_graph.job_name
        if self.master.status is JobStatus.CANCELED:
            raise JobExecutionError(f"job '{name}' ({job_id}) was cancelled", job_id, name)
        if self.master.status is JobStatus.SUSPENDED:
            raise JobExecutionError(f"job '{name}' ({job_id}) was suspended: {self.master.why_suspended}", job_id, name)
        return result

    def get_job_id(self) -> JobID:
        return self.master.job_id

    @property
    def job_name(self) -> str:
        return self.master.name

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.master.status)

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; the future is done when nothing of it is running."""
        self.master.cancel()
        done: Future[None] = Future()
        self.when_done(lambda: done.set_result(None))
        return CompletableFuture(done)

    def when_done(self, action: Callable[[], None]) -> None:
        """Call `action` when the job has ended in whatever way, before its result is handed out."""

        def act(_: Any) -> None:
            action()

        self._ended.add_done_callback(act)

    @property
    def failure(self) -> BaseException | None:
        """What ended the job, if it has ended and not by itself."""
        return self._ended.exception() if self._ended.done() else None

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return CompletableFuture(self.master.stop_with_savepoint(savepoint_directory, advance_to_end_of_event_time))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return CompletableFuture(self.master.trigger_savepoint(savepoint_directory))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        values = {name: each.get_local_value() for name, each in list(self.master.accumulators.items())}
        return CompletableFuture.completed(values)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing of the job is running; False if that took too long."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def collected(self, collect_id: str) -> CollectedValues:
        """The values of a collect sink."""
        return self.master.output.collected[collect_id]

    def wait(self) -> JobExecutionResult:
        """The result of the job, as soon as there is one."""
        return interruptible_result(self._result)
