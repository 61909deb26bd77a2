"""The handle of a job that runs at a job manager."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from penstock.cluster.leader_lookup import JobManagers
from penstock.common.completable_future import CompletableFuture, interruptible_result
from penstock.common.exceptions import JobExecutionError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.jobmaster.sinks.job_output import CollectedValues
from penstock.rest.background import in_background
from penstock.rest.client import SUBMITTER, RestClient, RestClientError
from penstock.rest.polling import poll, wait_for_operation

T = TypeVar("T")

_LOST = (RestClientError, OSError, http.client.HTTPException)
_LEADER_COMES_WITHIN_S = 300
_OF_AN_ENDED_JOB = (404, 409)
"""With these, a job manager answers a request to cancel a job that has ended."""


class ConnectionLostError(JobExecutionError):
    """The connection to the job is lost: it is not known how the job is doing."""


class RemoteJobClient(JobClient):
    """Shows what an attached job prints, as if it ran here; a detached one is only asked.

    Where several job managers stand by for each other, the job is followed to the one that leads next.
    """

    def __init__(
        self,
        rest: RestClient,
        job_id: str,
        job_name: str,
        collect_ids: list[str],
        is_attached: bool,
        managers: JobManagers | None = None,
        submitter: str | None = None,
    ) -> None:
        self._rest = rest
        self._managers = managers
        self._job_id = job_id
        self._job_name = job_name
        self._is_attached = is_attached
        self._submitter = submitter
        self._collected = {each: CollectedValues() for each in collect_ids}
        self._result: Future[JobExecutionResult] = Future()
        self._thread = threading.Thread(target=self._follow, name=f"job-{job_id}", daemon=True)
        self._starting = threading.Lock()

    def __repr__(self) -> str:
        return f"<RemoteJobClient of job {self._job_name!r} ({self._job_id}) at {self._rest.address}>"

    def start(self) -> RemoteJobClient:
        if self._is_attached:
            self._thread.start()
        return self

    # --- following -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        try:
            result = self._followed()
        except BaseException as failure:  # Raised where the result is waited for
            self._result.set_exception(failure)
            self._end_collected(failure)
        else:
            self._result.set_result(result)
            self._end_collected(None)

    def _followed(self) -> JobExecutionResult:
        while True:
            try:
                if self._is_attached:
                    self._show_output()
                return self._fetch_result()
            except ConnectionLostError as lost:
                self._rest = self._at_next_leader(lost)

    def _at_next_leader(self, lost: ConnectionLostError) -> RestClient:
        managers = self._managers
        if managers is None or not managers.may_change:
            raise lost
        if self._collected:
            raise ConnectionLostError(
                f"{lost}; values of execute_and_collect may be lost with it, so the client gives up: use a sink",
                self._job_id,
                self._job_name,
            ) from lost
        print("The connection to the job manager was lost; looking for the one that leads now.", file=sys.stderr)

        def found() -> RestClient | None:
            try:
                rest = RestClient(managers.leader())
                rest.get(f"/jobs/{self._job_id}/status")
            except RestClientError:  # None leads yet, or the job is not there yet.
                return None
            return rest

        next_leader = poll(found, _LEADER_COMES_WITHIN_S)
        if next_leader is None:
            raise lost
        print(f"Job {self._job_id} continues at {next_leader.address}.", file=sys.stderr)
        return next_leader

    def _end_collected(self, failure: BaseException | None) -> None:
        for values in self._collected.values():
            values.end(failure)

    def _show_output(self) -> None:
        for event in self._events():
            if "line" in event:
                self._show_line(event["line"], event["stderr"])
            elif "collect" in event:
                self._collected[event["collect"]].put_all(_unpickled(event["values"]))
            elif "end" in event:
                return
        raise self._lost("it hung up")

    def _show_line(self, line: str, is_error: bool) -> None:
        try:
            print(line, file=sys.stderr if is_error else sys.stdout, flush=True)
        except OSError as error:  # Such as a pipe whose reader has ended
            raise JobExecutionError(
                f"job '{self._job_name}' ({self._job_id}): what it prints cannot be written here ({error}); nobody "
                f"follows the job any more, but it may still be running: `penstock list -m {self._rest.address}` shows",
                self._job_id,
                self._job_name,
            ) from error

    def _events(self) -> Iterator[dict[str, Any]]:
        try:
            headers = {} if self._submitter is None else {SUBMITTER: self._submitter}
            with self._rest.open("GET", f"/jobs/{self._job_id}/output", headers=headers) as response:
                for line in response:
                    yield json.loads(line)
        except _LOST as error:
            if isinstance(error, RestClientError) and error.status == 404:
                yield {"end": True}  # It has ended, or another client has read it: only the result is left to wait for.
            raise self._lost(error) from error

    def _fetch_result(self) -> JobExecutionResult:
        def ended() -> dict[str, Any] | None:
            try:
                answer = self._rest.get(f"/jobs/{self._job_id}/execution-result")
            except RestClientError as error:
                raise self._lost(error) from error
            return answer["job-execution-result"] if answer["status"]["id"] == "COMPLETED" else None

        ended_job = poll(ended)
        if ended_job["application-status"] != "SUCCEEDED":
            raise self._failure(ended_job)
        accumulators = {name: _unpickled(value) for name, value in ended_job["accumulator-results"].items()}
        return JobExecutionResult(JobID(self._job_id), ended_job["net-runtime"], accumulators)

    def _failure(self, ended_job: dict[str, Any]) -> BaseException:
        """What ended the job, as it was raised there, if this process can load it."""
        cause = ended_job.get("failure-cause") or {}
        with contextlib.suppress(Exception):  # An exception class that only exists there is given as its text
            failure = _unpickled(cause["serialized-throwable"])
            if isinstance(failure, BaseException):
                return failure
        text = cause.get("stack-trace", "").strip() or f"job '{self._job_name}' is {ended_job['application-status']}"
        return JobExecutionError(text, self._job_id, self._job_name)

    def _lost(self, reason: object) -> ConnectionLostError:
        return ConnectionLostError(
            f"job '{self._job_name}' ({self._job_id}): the connection to the job manager at {self._rest.address} was "
            f"lost ({reason}); the job may still be running there: `penstock list -m {self._rest.address}` shows",
            self._job_id,
            self._job_name,
        )

    # --- what programs ask -----------------------------------------------------------------------------------------

    def get_job_id(self) -> JobID:
        return JobID(self._job_id)

    @property
    def job_name(self) -> str:
        return self._job_name

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        document = self._ask(lambda rest: rest.get(f"/jobs/{self._job_id}/status"))
        return CompletableFuture.completed(JobStatus[document["status"]])

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; the future is done when nothing of it is running."""
        done: Future[None] = Future()
        try:
            self._ask(lambda rest: rest.patch(f"/jobs/{self._job_id}?mode=cancel"))
        except RestClientError as error:
            has_ended = error.status in _OF_AN_ENDED_JOB or self._result.done()
            if not has_ended:
                done.set_exception(error)
                return CompletableFuture(done)
        self._following().add_done_callback(lambda _: done.set_result(None))
        return CompletableFuture(done)

    def _ask(self, ask: Callable[[RestClient], T]) -> T:
        """Ask the job manager, or if it no longer leads, the one that does."""
        try:
            return ask(self._rest)
        except RestClientError as error:
            managers = self._managers
            if error.status not in (None, 503) or managers is None or not managers.may_change:
                raise
            self._rest = RestClient(managers.leader())
            return ask(self._rest)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        body = {"targetDirectory": savepoint_directory, "drain": advance_to_end_of_event_time}
        return self._operation("stop", body)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        body = {"target-directory": savepoint_directory, "cancel-job": False}
        return self._operation("savepoints", body)

    def _operation(self, name: str, body: dict[str, Any]) -> CompletableFuture[str]:
        request = self._ask(lambda rest: rest.post(f"/jobs/{self._job_id}/{name}", body))
        rest, path = self._rest, f"/jobs/{self._job_id}/savepoints"  # Only the one that was asked knows the request.
        return CompletableFuture(in_background(lambda: str(wait_for_operation(rest, path, request)["location"])))

    def progress(self) -> dict[str, Any]:
        """How the job is doing, as `/jobs/:id/progress` reports it."""
        document: dict[str, Any] = self._ask(lambda rest: rest.get(f"/jobs/{self._job_id}/progress"))
        return document

    def restored_from(self) -> str | None:
        """The checkpoint or savepoint from which the job continues; None if it started afresh."""
        document = self._ask(lambda rest: rest.get(f"/jobs/{self._job_id}/checkpoints"))
        restored = document["latest"]["restored"]
        return None if restored is None else str(restored["external_path"])

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        path = f"/jobs/{self._job_id}/accumulators"
        document = self._ask(lambda rest: rest.get(path, includeSerializedValue="true"))
        values = document["serialized-user-task-accumulators"]
        return CompletableFuture.completed({name: _unpickled(value) for name, value in values.items()})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._following())

    def _following(self) -> Future[JobExecutionResult]:
        """A detached job is followed from the moment its result is asked for."""
        with self._starting:
            if not self._is_attached and self._thread.ident is None:
                self._thread.start()
        return self._result

    def collected(self, collect_id: str) -> CollectedValues:
        """The values of a collect sink."""
        return self._collected[collect_id]

    def wait(self) -> JobExecutionResult:
        """The result of the job, as soon as there is one. Nobody waits for a detached job."""
        if not self._is_attached:
            return DetachedJobExecutionResult(JobID(self._job_id), -1)
        return interruptible_result(self._result)


class DetachedJobExecutionResult(JobExecutionResult):
    """What execute() gives for a detached job: its id, and nothing about its end."""

    def get_net_runtime(self) -> int:
        raise self._unknown()

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        raise self._unknown()

    def get_all_accumulator_results(self) -> dict[str, Any]:
        raise self._unknown()

    def _unknown(self) -> JobExecutionError:
        return JobExecutionError(
            f"job {self.job_id} was submitted in detached mode: its run time and accumulators are not known here; "
            f"leave -d out to wait for them",
            str(self.job_id),
        )

    def __str__(self) -> str:
        return f"DetachedJobExecutionResult\nJobID: {self.job_id}"


def _unpickled(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))
