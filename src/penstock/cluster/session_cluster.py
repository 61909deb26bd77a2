"""A session cluster: one process and one Spark session that run many jobs at once."""

from __future__ import annotations

import contextlib
import logging
import pickle
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.cluster.high_availability.job_records import FencedJob
from penstock.cluster.high_availability.job_store import JobStore
from penstock.cluster.uploaded_programs import UploadedPrograms
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import InvalidProgramError, LeadershipLostError, PenstockError
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.dependencies.blob_store import BlobStore
from penstock.jobmaster.dependencies.shipped_modules import ShippedModules
from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.jobmaster.job_archive import FolderArchive
from penstock.jobmaster.job_preparation import prepare_job
from penstock.jobmaster.job_submission import PYTHON, JobSubmission
from penstock.jobmaster.local_job_client import LocalJobClient
from penstock.jobmaster.sinks.output_channel import ForwardedValues, OutputChannel
from penstock.rest.documents.by_path import describe

_log = logging.getLogger(__name__)

# Settings of the process, not of the jobs in it.
_OF_THE_PROCESS = (
    "spark.", "rest.", "web.", "blob.", "jobstore.", "jobmanager.archive.", "high-availability.", "security.",
    "penstock.high-availability.", keys.TARGET.key,
)  # fmt: skip


class SessionCluster:
    """Takes jobs in and runs each in threads of its own, on the shared Spark session.

    `target` is what jobs run on: `spark` or `inline`. With a `store`, other job managers can continue them.
    """

    client_comes_within_s = 300.0
    """How long a client has to find its job at the next leader."""

    def __init__(
        self,
        config: Configuration,
        folder: Path,
        spark: Any = None,
        target: str = "spark",
        hosts: Callable[[], list[dict[str, Any]]] | None = None,
        store: JobStore | None = None,
    ) -> None:
        self._config = config
        self._store = store
        self._spark = spark
        self._target = target
        directory = config.get_optional(keys.ARCHIVE_DIR)
        self.dispatcher = Dispatcher(
            describe,
            config,
            None if directory is None else FolderArchive(directory),
            config.get(keys.JOB_STORE_CAPACITY),
            hosts,
        )
        self.blobs = BlobStore(
            folder,
            config.get(keys.REST_MAX_CONTENT),
            config.get(keys.BLOB_CLEANUP_INTERVAL),
            config.get(keys.BLOB_MAX_TOTAL),
        )
        self.programs = UploadedPrograms(folder / "programs", config.get(keys.BLOB_MAX_TOTAL))
        self._modules = ShippedModules()
        self._channels: dict[str, OutputChannel] = {}
        self._connections: Counter[str] = Counter()
        """Of clients that read the output of their jobs."""
        self._submissions: dict[str, JobSubmission] = {}
        """Of jobs that run or are being launched: their files stay."""
        self._lock = threading.Lock()
        self._launching: set[str] = set()
        self._launched = threading.Condition(self._lock)
        self._suspended: LeadershipLostError | None = None

    def submit(self, submission: JobSubmission) -> str:
        """Start a job and return its id. One that is already here is not started again: its client missed it."""
        self.clean()
        _check_python(submission)
        job_id = submission.job_id or str(JobID.generate())
        with self._alone_with(job_id):
            if self.dispatcher.find(job_id) is None and not (self._store is not None and self._store.has(job_id)):
                leadership = None if self._store is None else self._store.new_job(job_id)
                self._launch(job_id, submission, leadership, is_new=True)
        return job_id

    @contextmanager
    def _alone_with(self, job_id: str) -> Iterator[None]:
        """Wait until no other thread launches the job.

        A client may submit its job again while the first request is still being served, and a job that is just being
        stored is found by those who look for jobs to continue.
        """
        with self._launched:
            self._launched.wait_for(lambda: job_id not in self._launching)
            self._launching.add(job_id)
        try:
            yield
        finally:
            with self._launched:
                self._launching.remove(job_id)
                self._launched.notify_all()

    def _launch(
        self, job_id: str, submission: JobSubmission, leadership: FencedJob | None, is_new: bool = False
    ) -> None:
        with self._lock:
            self._submissions[job_id] = submission
        try:
            self._launch_with_files(job_id, submission, leadership, is_new)
        except BaseException as error:
            with self._lock:
                self._submissions.pop(job_id, None)
            if self._suspended is not None:
                raise self._suspended from error  # Whatever else has failed since
            raise

    def _launch_with_files(
        self, job_id: str, submission: JobSubmission, leadership: FencedJob | None, is_new: bool
    ) -> None:
        dependencies = submission.dependencies.at(self.blobs.materialize)
        self._modules.add(dependencies.python_files)
        try:
            settings = self._settings(submission)
            graph = self._load(submission)
            client = prepare_job(graph, settings, dependencies, self._spark, JobID(job_id), leadership)
            with contextlib.ExitStack() as stack:
                if is_new and self._store is not None and leadership is not None:
                    stack.enter_context(self._stored(job_id, submission, leadership, self._store))
                self._start(client, submission, dependencies, leadership)
        except BaseException:
            self._modules.remove(dependencies.python_files)
            raise

    @contextmanager
    def _stored(self, job_id: str, submission: JobSubmission, leadership: FencedJob, store: JobStore) -> Iterator[None]:
        """Keep a new job for the next leader, unless it does not start: its client then learns that it was refused."""
        try:
            store.put(job_id, leadership, submission, self.blobs.read)
            yield
        except LeadershipLostError:  # The next leader has it, or its client submits it there.
            raise
        except BaseException:
            try:
                leadership.check()
                store.remove(job_id)
            except (LeadershipLostError, OSError) as error:
                _log.warning("what is stored of job %s, which was refused, cannot be removed: %s", job_id, error)
            raise

    def recover(self) -> list[str]:
        """Continue the jobs of former leaders; returns the ids of those that cannot be continued now."""
        assert self._store is not None
        failed = []
        for job_id in self._store.job_ids():
            with self._alone_with(job_id):
                if self.dispatcher.find(job_id) is None and not self._recover(job_id, self._store):
                    failed.append(job_id)
        return failed

    def _recover(self, job_id: str, store: JobStore) -> bool:
        try:
            job = store.adopt(job_id)
            if job is not None:
                for blob in job.submission.blobs():
                    with self.blobs.upload(blob) as upload:
                        upload.write(job.read_blob(blob))
                        upload.finish()
                self._launch(job_id, job.submission, job.leadership)
                self._expect_client(job_id, job.submission)
        except LeadershipLostError:
            raise
        except Exception:  # The other jobs must not suffer, and it is tried again
            _log.exception("job %s cannot be continued now", job_id)
            return False
        return True

    def _expect_client(self, job_id: str, submission: JobSubmission) -> None:
        """A job that ends with its client ends, too, if the client does not find it here."""
        if submission.ends_with_client:
            timer = threading.Timer(self.client_comes_within_s, self._hang_up_unless_read, (job_id,))
            timer.daemon = True
            timer.start()

    def _hang_up_unless_read(self, job_id: str) -> None:
        channel = self.channel(job_id)
        if channel is not None and not channel.was_read:
            self.hang_up(job_id)

    def _settings(self, submission: JobSubmission) -> Configuration:
        """The job's own, on top of those of this process that concern jobs."""
        mine = {key: value for key, value in self._config.to_dict().items() if not key.startswith(_OF_THE_PROCESS)}
        settings = {**mine, **submission.configuration, keys.TARGET.key: self._target}
        if self._store is not None:
            settings.pop(keys.CHECKPOINT_STORAGE.key, None)  # In this process they would be lost with it.
        return Configuration.from_dict(settings)

    def _load(self, submission: JobSubmission) -> JobGraph:
        try:
            graph = pickle.loads(self.blobs.read(submission.graph))
        except PenstockError:
            raise
        except Exception as error:  # Whatever the code of the job's modules raises
            raise InvalidProgramError(
                f"the job manager cannot load the job: {type(error).__name__}: {error}; install what is missing where "
                f"the job manager runs, or bring it along with -pyfs or -pyreq"
            ) from error
        if not isinstance(graph, JobGraph):
            raise InvalidProgramError(f"what was uploaded as the job is a {type(graph).__name__}, not a JobGraph")
        return graph

    def _start(
        self,
        client: LocalJobClient,
        submission: JobSubmission,
        dependencies: JobDependencies,
        leadership: FencedJob | None,
    ) -> None:
        job_id, output = str(client.get_job_id()), client.master.output
        channel = OutputChannel(
            submission.is_attached,
            print_to_log,
            lambda: client.master.status is JobStatus.CANCELLING,
            submission.submitter,
        )
        output.write_lines = channel.write_lines
        output.collected.update({each: ForwardedValues(channel, each) for each in output.collected})
        with self._lock:
            if self._suspended is not None:
                raise self._suspended
            if submission.is_attached:
                self._channels[job_id] = channel
            self.dispatcher.add(client, self._settings(submission))
        client.when_done(lambda: self._end(client, channel, dependencies))
        client.when_done(lambda: self._forget(job_id, leadership))
        checkpoint = None if leadership is None else leadership.checkpoint
        _log.info(
            "job %s '%s' %s",
            job_id,
            client.master.job_graph.job_name,
            "was submitted" if checkpoint is None else f"continues from {checkpoint}",
        )
        client.start()

    def _end(self, client: LocalJobClient, channel: OutputChannel, dependencies: JobDependencies) -> None:
        job_id, status = str(client.get_job_id()), client.master.status
        failure = client.failure if status is JobStatus.FAILED else None
        reason = "" if failure is None else ": " + str(failure).partition("\n")[0]
        _log.info("job %s is %s%s", job_id, status.name, reason)
        if status is JobStatus.SUSPENDED:
            channel.suspend()
        else:
            channel.end()
        self._modules.remove(dependencies.python_files)
        with self._lock:
            self._submissions.pop(job_id, None)

    def _forget(self, job_id: str, leadership: FencedJob | None) -> None:
        """A job that is over must not be continued. Comes last, when its end is noted everywhere else."""
        if self._store is None or leadership is None or not leadership.has_ended:
            return
        try:
            self._store.remove(job_id)
        except OSError as error:
            _log.warning("what is stored of job %s cannot be removed; the next leader will: %s", job_id, error)

    def channel(self, job_id: str) -> OutputChannel | None:
        """Where the client of an attached job reads, and others watch."""
        with self._lock:
            return self._channels.get(job_id)

    def connect(self, job_id: str) -> None:
        """The client of a job reads on another connection."""
        with self._lock:
            self._connections[job_id] += 1

    def disconnect(self, job_id: str) -> None:
        """A connection of the client of a job is gone; it may have made another one."""
        with self._lock:
            self._connections[job_id] -= 1
            is_last = self._connections[job_id] <= 0
            if is_last:
                del self._connections[job_id]
        if is_last:
            self.hang_up(job_id)

    def hang_up(self, job_id: str) -> None:
        """The client of a job has stopped reading."""
        with self._lock:
            channel = self._channels.get(job_id)
            submission = self._submissions.get(job_id)
        if channel is not None:
            channel.hang_up()
        if submission is not None and submission.ends_with_client:
            _log.info("the client of job %s is gone: cancelling the job", job_id)
            self.dispatcher.cancel(job_id)

    def clean(self) -> None:
        """Forget what is no longer needed; to be called now and then."""
        with self._lock:
            in_use = {blob for each in self._submissions.values() for blob in each.blobs()}
            self._channels = {job_id: each for job_id, each in self._channels.items() if not each.is_over}
        self.blobs.clean(in_use)

    def close(self, timeout_s: float) -> None:
        """Cancel all jobs and wait for their ends, but not forever."""
        jobs = self.dispatcher.running()
        self.dispatcher.cancel_all()
        _wait_for(jobs, timeout_s)

    def suspend(self, reason: LeadershipLostError, timeout_s: float) -> None:
        """Stop all jobs as they are, for another job manager to continue them."""
        with self._lock:
            self._suspended = reason
            jobs = self.dispatcher.running()
        for job in jobs:
            job.master.suspend(reason)
        _wait_for(jobs, timeout_s)


def _wait_for(jobs: list[RunningJob], timeout_s: float) -> None:
    for job in jobs:
        if not job.client.join(timeout_s):
            _log.warning("job %s has not ended in time", job.job_id)


def print_to_log(line: str) -> None:
    """What a job prints that nobody waits for; the standard output of a job manager is its log."""
    print(line, file=sys.stdout, flush=True)


def _check_python(submission: JobSubmission) -> None:
    if submission.python != PYTHON:
        raise InvalidProgramError(
            f"the job comes from Python {submission.python} and the job manager runs {PYTHON}: functions cannot travel "
            f"between the two; use the same Python"
        )
