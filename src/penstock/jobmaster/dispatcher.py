"""The jobs of one process, by id: those that run, and what is left of those that ended."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.common.configuration import Configuration
from penstock.common.job_status import JobStatus
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.local_job_client import LocalJobClient

_log = logging.getLogger(__name__)

DEFAULT_CAPACITY = 100


@dataclass(frozen=True)
class RunningJob:
    """A job whose job master is in this process."""

    client: LocalJobClient
    config: Configuration

    @property
    def master(self) -> JobMaster:
        return self.client.master

    @property
    def job_id(self) -> str:
        return str(self.master.job_id)


@dataclass(frozen=True)
class EndedJob:
    """What is kept of a job after its end: JSON documents by their path below `/jobs/:id`. It holds no user code."""

    job_id: str
    documents: Mapping[str, Any]


Describe = Callable[[RunningJob], dict[str, Any]]


class JobArchive(Protocol):
    """Keeps ended jobs beyond the process."""

    def load(self) -> list[EndedJob]:
        """The kept jobs, oldest first."""

    def save(self, job: EndedJob) -> None: ...


class Dispatcher:
    """Knows every job of this process. An ended one stays listed, as documents, until `capacity` others ended later."""

    def __init__(
        self,
        describe: Describe,
        config: Configuration,
        archive: JobArchive | None = None,
        capacity: int = DEFAULT_CAPACITY,
        hosts: Callable[[], list[dict[str, Any]] | None] | None = None,
    ) -> None:
        self.config = config
        self._describe = describe
        self._archive = archive
        self._capacity = capacity
        self._hosts = hosts
        self._lock = threading.Lock()
        self._running: OrderedDict[str, RunningJob] = OrderedDict()
        self._ended: OrderedDict[str, EndedJob] = OrderedDict()
        for job in [] if archive is None else archive.load()[-capacity:]:
            self._ended[job.job_id] = job

    def add(self, client: LocalJobClient, config: Configuration) -> RunningJob:
        """Take in a job that was started."""
        job = RunningJob(client, config)
        with self._lock:
            self._running[job.job_id] = job
        client.when_done(lambda: self._end(job))
        return job

    def running(self) -> list[RunningJob]:
        """The jobs that have not ended, in the order they came."""
        with self._lock:
            return list(self._running.values())

    def ended(self) -> list[EndedJob]:
        with self._lock:
            return list(self._ended.values())

    def find(self, job_id: str) -> RunningJob | EndedJob | None:
        with self._lock:
            return self._running.get(job_id) or self._ended.get(job_id)

    def hosts(self) -> list[dict[str, Any]] | None:
        """Where tasks run, as entries of `/taskmanagers`; None if that is not known here."""
        return None if self._hosts is None else self._hosts()

    def cancel(self, job_id: str) -> None:
        """Cancel a job, unless it has ended."""
        job = self.find(job_id)
        if isinstance(job, RunningJob):
            job.master.cancel()

    def cancel_all(self) -> None:
        """Cancel every job; does not wait for their ends."""
        for job in self.running():
            job.master.cancel()

    def _end(self, job: RunningJob) -> None:
        try:
            if job.master.status is not JobStatus.SUSPENDED:  # Otherwise it has not ended, but continues elsewhere.
                self._keep(EndedJob(job.job_id, self._describe(job)))
        except Exception as error:  # The job's own end must not suffer
            _log.warning("job %s cannot be kept in the history: %s: %s", job.job_id, type(error).__name__, error)
        finally:
            with self._lock:
                del self._running[job.job_id]

    def _keep(self, job: EndedJob) -> None:
        with self._lock:
            self._ended[job.job_id] = job
            while len(self._ended) > self._capacity:
                self._ended.popitem(last=False)
        if self._archive is not None:
            self._archive.save(job)
