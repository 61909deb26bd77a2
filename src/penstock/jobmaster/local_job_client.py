"""The handle of a job whose job master runs in this process."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.exceptions import JobExecutionError, UnsupportedFeatureError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.jobmaster.job_master import JobMaster


class LocalJobClient(JobClient):
    """Runs a job master in a thread."""

    def __init__(self, master: JobMaster) -> None:
        self.master = master
        self._result: Future[JobExecutionResult] = Future()
        self._thread = threading.Thread(target=self._run, name=f"job-{master.job_id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            result = self.master.run()
            if self.master.status is JobStatus.CANCELED:
                raise JobExecutionError(
                    f"job '{self.master.job_graph.job_name}' ({self.master.job_id}) was cancelled",
                    str(self.master.job_id),
                    self.master.job_graph.job_name,
                )
            self._result.set_result(result)
        except BaseException as failure:  # Handed to whoever waits for the result
            self._result.set_exception(failure)

    def get_job_id(self) -> JobID:
        return self.master.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.master.status)

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; the future is done when nothing of it runs any more."""
        self.master.cancel()
        done: Future[None] = Future()

        def end(_: Any) -> None:
            done.set_result(None)

        self._result.add_done_callback(end)
        return CompletableFuture(done)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        raise UnsupportedFeatureError("savepoints cannot be written yet; use cancel() to end the job without one")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        raise UnsupportedFeatureError("savepoints cannot be written yet")

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        values = {name: each.get_local_value() for name, each in list(self.master.accumulators.items())}
        return CompletableFuture.completed(values)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def wait(self) -> JobExecutionResult:
        """Wait in short steps, so that Ctrl-C is seen at once."""
        while True:
            try:
                return self._result.result(timeout=0.2)
            except FutureTimeoutError:
                if self._result.done():
                    raise
