"""The jobs of a leader, with everything that the next one needs to continue them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.checkpoint.finding import OpenFolder
from penstock.checkpoint.folders import Folder, folder_at
from penstock.cluster.high_availability.fence import Fence
from penstock.cluster.high_availability.job_records import (
    FencedJob,
    JobRecord,
    read_record,
    record_name,
    record_tokens,
)
from penstock.common.exceptions import CorruptStateError, LeadershipLostError
from penstock.jobmaster.job_submission import JobSubmission

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_SUBMISSION = "submission"
_BLOB = "blob-"


@dataclass(frozen=True)
class StoredJob:
    """A job of a former leader, which is this one's now."""

    job_id: str
    submission: JobSubmission
    leadership: FencedJob
    _folder: Folder

    def read_blob(self, blob: str) -> bytes:
        return self._folder.read(_BLOB + blob)


class JobStore:
    """A folder for each job: the submission, its blobs, and a record by each leader."""

    def __init__(self, folder: Folder, fence: Fence, open_folder: OpenFolder = folder_at) -> None:
        self._folder = folder
        self._fence = fence
        self._open_folder = open_folder

    def new_job(self, job_id: str) -> FencedJob:
        """The leadership over a job that is not stored yet."""
        return FencedJob(self._folder.within(job_id), self._fence, JobRecord())

    def put(
        self, job_id: str, leadership: FencedJob, submission: JobSubmission, read_blob: Callable[[str], bytes]
    ) -> None:
        """From now on the job continues under any leader. Raises LeadershipLostError if this one does not lead."""
        folder = self._folder.within(job_id)
        folder.make()
        for blob in sorted(submission.blobs()):
            folder.write(_BLOB + blob, read_blob(blob))
        folder.write(_SUBMISSION, json.dumps(submission.to_json()).encode())
        try:
            leadership.take()
        except LeadershipLostError:
            leadership.withdraw()
            raise

    def has(self, job_id: str) -> bool:
        """True if any leader has accepted the job."""
        return _is_accepted(self._folder.within(job_id).names())

    def job_ids(self) -> list[str]:
        return sorted(name for name in self._folder.names() if _JOB_ID.fullmatch(name))

    def adopt(self, job_id: str) -> StoredJob | None:
        """Make a job of a former leader this one's; None if it is over, and then nothing of it is left."""
        folder = self._folder.within(job_id)
        names = folder.names()
        tokens = record_tokens(names)
        if not _is_accepted(names):  # It never was, or its removal was cut short.
            self.remove(job_id)
            return None
        record = read_record(folder, tokens[-1])
        if record.ended is not None:
            self._finish(job_id, record)
            return None
        leadership = FencedJob(folder, self._fence, replace(record, unwanted=None))
        leadership.take()
        for token in tokens:
            if token < self._fence.token:
                folder.delete(record_name(token))
        return StoredJob(job_id, self._submission(folder), leadership, folder)

    def _finish(self, job_id: str, record: JobRecord) -> None:
        """Do what a former leader had left to do for a job that is over."""
        if record.unwanted is not None:
            self._open_folder(record.unwanted).delete_all()
        self.remove(job_id)

    def _submission(self, folder: Folder) -> JobSubmission:
        try:
            return JobSubmission.of_json(json.loads(folder.read(_SUBMISSION)))
        except ValueError as error:
            raise CorruptStateError(
                f"{folder.path_of(_SUBMISSION)} is not what a leader wrote ({error}); if the job is to end, "
                f"remove the folder it is in"
            ) from error

    def remove(self, job_id: str) -> None:
        """Forget a job that is over."""
        folder = self._folder.within(job_id)
        folder.delete(_SUBMISSION)  # It goes first: without it, what remains if this process dies now is no job.
        folder.delete_all()


def _is_accepted(names: list[str]) -> bool:
    return _SUBMISSION in names and bool(record_tokens(names))
