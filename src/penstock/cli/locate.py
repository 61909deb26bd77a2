"""Finds the jobs that a command line is about: at a job manager, or among the jobs of this user on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.cluster.leader_lookup import JobManagers
from penstock.common.configuration import Configuration
from penstock.common.exceptions import PenstockError
from penstock.rest import sockets
from penstock.rest.client import Address, RestClient, RestClientError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")
ENDED = ("FINISHED", "CANCELED", "FAILED")


class JobNotFoundError(PenstockError):
    """No job, or more than one, matches what the user typed."""


@dataclass(frozen=True)
class LocatedJob:
    """A job, and the client of the process that knows it."""

    client: RestClient
    entry: Mapping[str, Any]
    """As in `/jobs/overview`."""

    @property
    def job_id(self) -> str:
        return str(self.entry["jid"])

    @property
    def has_ended(self) -> bool:
        return self.entry["state"] in ENDED

    def folder(self, named: str | None) -> str | None:
        """A folder as the job knows it. On this machine, a relative one starts where the command was given."""
        if not named or _SCHEME.match(named) or self.client.address.path is None:
            return named or None
        return os.path.abspath(named)


def manager_address(given: str | None, configuration: Mapping[str, str]) -> Address | None:
    """The job manager that -m or the settings name; of several, the one that leads."""
    managers = JobManagers.of(Configuration.from_dict(configuration), given)
    return None if managers is None else managers.leader()


def all_jobs(manager: Address | None) -> list[LocatedJob]:
    """All jobs, in the order of their starts."""
    if manager is not None:
        found = _jobs_at(RestClient(manager))
    else:
        found = [job for path in sockets.live_sockets() for job in _jobs_of_process(RestClient(Address(path)))]
    by_id = {job.job_id: job for job in found}  # A job manager that stands by repeats the leader's answer.
    return sorted(by_id.values(), key=lambda job: (job.entry["start-time"], job.job_id))


def _jobs_at(client: RestClient) -> list[LocatedJob]:
    return [LocatedJob(client, entry) for entry in client.get("/jobs/overview")["jobs"]]


def _jobs_of_process(client: RestClient) -> list[LocatedJob]:
    try:
        return _jobs_at(client)
    except RestClientError as error:
        if error.status in (None, 503):  # It has ended since its socket was found, or stands by without a leader.
            return []
        raise


def locate(job: str, manager: Address | None) -> LocatedJob:
    """The job with this id, or whose id begins like this. Running jobs take precedence over ended ones."""
    if not is_job_id(job):
        raise JobNotFoundError(f"{job!r} is not a job id: an id has 32 hexadecimal digits, or is the beginning of one")
    found = [each for each in all_jobs(manager) if each.job_id.startswith(job.lower())]
    candidates = [each for each in found if not each.has_ended] or found
    if not candidates:
        raise JobNotFoundError(
            f"there is no job {job}{'' if manager is None else f' at {manager}'}; `penstock list -a` shows those there "
            f"are{', and -m host:port asks a job manager elsewhere' if manager is None else ''}"
        )
    if len(candidates) > 1:
        ids = ", ".join(each.job_id for each in candidates)
        raise JobNotFoundError(f"{job} is the beginning of {len(candidates)} job ids: {ids}; give more digits")
    return candidates[0]


def is_job_id(text: str) -> bool:
    return _PREFIX.fullmatch(text.lower()) is not None
