"""Ended jobs as files, in the form of Flink's job archives: documents of the REST API by their paths."""

from __future__ import annotations

import json
import logging
import re

from penstock.checkpoint.folders import Folder, folder_at
from penstock.jobmaster.dispatcher import EndedJob

_log = logging.getLogger(__name__)
_JOB_ID = re.compile(r"[0-9a-f]{32}")
_OVERVIEW = "/overview"


class FolderArchive:
    """A folder with one file for each ended job."""

    def __init__(self, directory: str) -> None:
        self._folder: Folder = folder_at(directory)
        self._folder.make()

    def save(self, job: EndedJob) -> None:
        self._folder.write(job.job_id, to_text(job).encode())

    def load(self) -> list[EndedJob]:
        """The archived jobs, by the time of their end; a file that cannot be read is left out, and logged."""
        jobs = [job for name in self._folder.names() if _JOB_ID.fullmatch(name) and (job := self._read(name))]
        return sorted(jobs, key=lambda job: job.documents[_OVERVIEW]["end-time"])

    def _read(self, job_id: str) -> EndedJob | None:
        try:
            return from_text(job_id, self._folder.read(job_id).decode())
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("the archive of job %s cannot be read: %s", job_id, error)
            return None


def to_text(job: EndedJob) -> str:
    entries = []
    for suffix, document in job.documents.items():
        if suffix == _OVERVIEW:
            path, document = "/jobs/overview", {"jobs": [document]}
        else:
            path = f"/jobs/{job.job_id}{suffix}"
        entries.append({"path": path, "json": json.dumps(document)})
    return json.dumps({"archive": entries})


def from_text(job_id: str, text: str) -> EndedJob:
    documents = {}
    for entry in json.loads(text)["archive"]:
        document = json.loads(entry["json"])
        if entry["path"] == "/jobs/overview":
            documents[_OVERVIEW] = document["jobs"][0]
        else:
            documents[entry["path"].removeprefix(f"/jobs/{job_id}")] = document
    if not {"", _OVERVIEW, "/status"} <= documents.keys():
        raise ValueError("it lacks the job's overview, details or status")
    return EndedJob(job_id, documents)
