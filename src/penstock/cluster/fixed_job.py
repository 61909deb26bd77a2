"""A job whose id the configuration fixes: a program that is started again continues it.

A cluster manager that restarts a driver starts the same program with the same settings. Beside the checkpoints of the
job lies what the last driver has written down, as the leader of a highly available job manager does for the next one.
So the new driver finds the newest checkpoint, and an old one that still runs somewhere can do no harm.
"""

from __future__ import annotations

import secrets
import weakref
from dataclasses import replace

from penstock.checkpoint.finding import OpenFolder
from penstock.checkpoint.folders import folder_at
from penstock.checkpoint.options import CheckpointOptions
from penstock.cluster.high_availability.fence import Fence, fence_tokens
from penstock.cluster.high_availability.job_records import (
    FencedJob,
    JobRecord,
    read_record,
    record_name,
    record_tokens,
)
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.job_id import JobID
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.local_job_client import LocalJobClient

_DRIVERS = "drivers"
"""The folder beside a job's checkpoints."""
_CHANCES = 10**6
"""A token ends with a random number below this, which distinguishes drivers that start at the same moment."""

_running: weakref.WeakValueDictionary[JobID, LocalJobClient] = weakref.WeakValueDictionary()


def fixed_job_id(config: Configuration) -> JobID | None:
    """The id that the configuration gives the job, if any; raises if it is no id, or a job of this process has it."""
    text = config.get_optional(keys.FIXED_JOB_ID)
    if text is None:
        return None
    try:
        job_id = JobID.from_hex_string(text)
    except ValueError as error:
        raise ConfigurationError(f"{keys.FIXED_JOB_ID.key}: {error}") from error
    running = _running.get(job_id)
    if running is not None and not running.master.status.is_terminal_state():
        raise ConfigurationError(
            f"{keys.FIXED_JOB_ID.key} is {job_id}, but a job with this id runs already in this process; wait for its "
            f"end, or give each job an id of its own"
        )
    return job_id


def remember(client: LocalJobClient) -> None:
    """The job runs in this process now."""
    _running[client.get_job_id()] = client


def lead(
    job_id: JobID, job_graph: JobGraph, config: Configuration, open_folder: OpenFolder = folder_at
) -> FencedJob | None:
    """Continue the job where its last driver left it; None if it keeps nothing to continue from."""
    directory = CheckpointOptions.of(config).directory
    if directory is None or job_graph.is_batch:
        return None
    of_job = open_folder(directory).within(str(job_id))
    folder = of_job.within(_DRIVERS)
    fences = folder.within("fence")
    # A driver that was killed when it had just begun has a fence, but no record.
    newest = max([*record_tokens(folder.names()), *fence_tokens(fences)], default=0)
    token = (newest // _CHANCES + 1) * _CHANCES + secrets.randbelow(_CHANCES)
    fence = Fence(fences, token)
    folder.make()
    # The fence comes first: a driver that still runs commits whatever it confirms before, so that must be read here.
    fence.put_up()
    tokens = record_tokens(folder.names())
    record = read_record(folder, max(tokens)) if tokens else JobRecord()
    if record.unwanted is not None:  # It was over, and its driver died while it removed the checkpoints.
        for name in of_job.names():
            if name != _DRIVERS:
                of_job.within(name).delete_all()
        record = JobRecord(last_id=record.last_id)
    leadership = FencedJob(folder, fence, replace(record, ended=None))
    leadership.take()
    for former in tokens:
        folder.delete(record_name(former))
    return leadership
