"""The verbs for running jobs, in Flink's words: list, cancel, stop, savepoint, checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.cli.completion import complete_job
from penstock.cli.job_ends import wait_for_end
from penstock.cli.job_options import Answer, JobCommand, job_options, say_meaning
from penstock.cli.locate import LocatedJob, all_jobs, is_job_id, locate
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import CheckpointError, PenstockError
from penstock.rest.client import Address, RestClient
from penstock.rest.polling import wait_for_operation

F = TypeVar("F", bound=Callable[..., Any])

_RUNNING = "------------------ Running/Restarting Jobs -------------------"
_SCHEDULED = "----------------------- Scheduled Jobs -----------------------"
_TERMINATED = "---------------------- Terminated Jobs -----------------------"
_LINE = "--------------------------------------------------------------"

_USE_DEFAULT = ""
"""The value of an option that was given without one: it means the configured folder."""

_format_option = click.option(
    "-type",
    "--type",
    "format_type",
    type=click.Choice(["canonical", "native"], case_sensitive=False),
    default="canonical",
    help="canonical: readable by every version and backend (default); native: quicker to write.",
)
_detached_option = click.option(
    "-detached", "--detached", "is_detached", is_flag=True, help="Return as soon as the savepoint is triggered."
)


def _directory_option(short: str, long: str, help: str) -> Callable[[F], F]:
    return click.option(short, long, "directory", is_flag=False, flag_value=_USE_DEFAULT, metavar="[DIR]", help=help)


def _path_of_savepoint(found: LocatedJob, request: dict[str, str]) -> str:
    """Wait for a savepoint that was asked for; returns where it is."""
    operation = wait_for_operation(found.client, f"/jobs/{found.job_id}/savepoints", request)
    return str(operation["location"])


def _path_of_last_savepoint(found: LocatedJob, request: dict[str, str]) -> str:
    """Wait for a savepoint with which a job ends, and for that end; returns where the savepoint is."""
    location = _path_of_savepoint(found, request)
    try:
        wait_for_end(found)
    except PenstockError:
        click.echo(f"The savepoint is complete: {location}", err=True)
        raise
    return location


def _say_where_it_is(answer: Answer, location: str) -> None:
    answer.say(f"Savepoint completed. Path: {location}")
    answer.say("You can resume your program from this savepoint with the run command.")


@click.command("list", cls=JobCommand)
@click.option("-r", "--running", "only_running", is_flag=True, help="Only running jobs.")
@click.option("-s", "--scheduled", "only_scheduled", is_flag=True, help="Only scheduled jobs.")
@click.option("-a", "--all", "with_ended", is_flag=True, help="Also jobs that have ended, as long as they are known.")
@job_options
def list_jobs(
    only_running: bool,
    only_scheduled: bool,
    with_ended: bool,
    manager: Address | None,
    answer: Answer,
    configuration: Mapping[str, str],
) -> None:
    """List running and scheduled jobs.

    Lists all jobs of this user on this machine, or with -m those of a job manager.
    """
    say_meaning("-s", "--scheduled")
    answer.say("Waiting for response...")
    jobs = all_jobs(manager)
    running = [job for job in jobs if not job.has_ended and job.entry["state"] != "CREATED"]
    scheduled = [job for job in jobs if job.entry["state"] == "CREATED"]
    shown: list[LocatedJob] = []
    if only_running or with_ended or not only_scheduled:
        shown += _show(answer, _RUNNING, running, "No running jobs.")
    if only_scheduled or with_ended or not only_running:
        shown += _show(answer, _SCHEDULED, scheduled, "No scheduled jobs.")
    if with_ended:
        shown += _show(answer, _TERMINATED, [job for job in jobs if job.has_ended], "No terminated jobs.")
    answer.give({"jobs": [job.entry for job in shown]})


def _show(answer: Answer, header: str, jobs: list[LocatedJob], nothing: str) -> list[LocatedJob]:
    if not jobs:
        answer.say(nothing)
        return jobs
    answer.say(header)
    for job in jobs:
        started = datetime.fromtimestamp(job.entry["start-time"] / 1000).strftime("%d.%m.%Y %H:%M:%S")
        answer.say(f"{started} : {job.job_id} : {job.entry['name']} ({job.entry['state']})")
    answer.say(_LINE)
    return jobs


@click.command(cls=JobCommand)
@click.argument("job", required=False, shell_complete=complete_job)
@_directory_option("-s", "--withSavepoint", "Write a savepoint first (deprecated: use stop).")
@_format_option
@job_options
def cancel(
    job: str | None,
    directory: str | None,
    format_type: str,
    manager: Address | None,
    answer: Answer,
    configuration: Mapping[str, str],
) -> None:
    """Cancel a running job. JOB is its id, or the beginning of it."""
    job, directory = _job_and_directory(job, directory, "-s")
    found = locate(job, manager)
    if directory is None:
        answer.say(f"Cancelling job {found.job_id}.")
        found.client.patch(f"/jobs/{found.job_id}?mode=cancel")
        wait_for_end(found)
        answer.say(f"Cancelled job {found.job_id}.")
        answer.give({"job-id": found.job_id})
        return
    say_meaning("-s", "--withSavepoint")
    click.echo("DEPRECATION WARNING: cancel with a savepoint is deprecated; use `penstock stop`", err=True)
    target = directory or "default savepoint directory"
    answer.say(f"Cancelling job {found.job_id} with {format_type} savepoint to {target}.")
    body = {"target-directory": found.folder(directory), "cancel-job": True, "formatType": format_type.upper()}
    request = found.client.post(f"/jobs/{found.job_id}/savepoints", body)
    location = _path_of_last_savepoint(found, request)
    answer.say(f"Cancelled job {found.job_id}. Savepoint stored in {location}.")
    answer.give({"job-id": found.job_id, "location": location})


@click.command(cls=JobCommand)
@click.argument("job", required=False, shell_complete=complete_job)
@_directory_option("-p", "--savepointPath", "Folder for the savepoint, instead of the configured one.")
@click.option("-d", "--drain", is_flag=True, help="Let all windows and event-time timers fire first.")
@_format_option
@_detached_option
@job_options
def stop(
    job: str | None,
    directory: str | None,
    drain: bool,
    format_type: str,
    is_detached: bool,
    manager: Address | None,
    answer: Answer,
    configuration: Mapping[str, str],
) -> None:
    """Stop a running job with a savepoint. JOB is its id, or the beginning of it."""
    job, directory = _job_and_directory(job, directory, "-p")
    say_meaning("-p", "--savepointPath, the folder for the savepoint,")
    say_meaning("-d", "--drain")
    found = locate(job, manager)
    doing = "Draining" if drain else "Suspending"
    answer.say(f'{doing} job "{found.job_id}" with a {format_type.upper()} savepoint.')
    body = {"targetDirectory": found.folder(directory), "drain": drain, "formatType": format_type.upper()}
    request = found.client.post(f"/jobs/{found.job_id}/stop", body)
    if is_detached:
        answer.say(f"Successfully triggered stop with savepoint in detached mode, triggerId: {request['request-id']}")
        answer.give({"job-id": found.job_id, **request})
        return
    location = _path_of_last_savepoint(found, request)
    answer.say(f"Savepoint completed. Path: {location}")
    answer.give({"job-id": found.job_id, "location": location})


@click.command(cls=JobCommand)
@click.argument("job", required=False, metavar="[JOB|CHECKPOINT]", shell_complete=complete_job)
@click.argument("directory", required=False)
@click.option("-d", "--dispose", "disposed", metavar="PATH", help="Remove the savepoint at PATH.")
@_format_option
@_detached_option
@job_options
def savepoint(
    job: str | None,
    directory: str | None,
    disposed: str | None,
    format_type: str,
    is_detached: bool,
    manager: Address | None,
    answer: Answer,
    configuration: Mapping[str, str],
) -> None:
    """Write a savepoint of a job, or remove one (-d).

    JOB is the id of a running job, or the beginning of it; the job continues. The path of a retained checkpoint makes
    a savepoint of a job that no longer runs.
    """
    if disposed is not None:
        say_meaning("-d", "--dispose")
        _dispose(disposed, manager, answer)
    elif job is None:
        raise click.UsageError("which job? Give its id, or the beginning of it; `penstock list` shows the jobs")
    elif _is_path(job):
        _savepoint_of_checkpoint(job, directory, format_type, configuration, answer)
    else:
        _savepoint_of_job(locate(job, manager), directory, format_type, is_detached, answer)


def _is_path(word: str) -> bool:
    return not is_job_id(word) and ("/" in word or Path(word).exists())


def _savepoint_of_job(
    found: LocatedJob, directory: str | None, format_type: str, is_detached: bool, answer: Answer
) -> None:
    answer.say(f"Triggering savepoint for job {found.job_id}.")
    body = {"target-directory": found.folder(directory), "cancel-job": False, "formatType": format_type.upper()}
    request = found.client.post(f"/jobs/{found.job_id}/savepoints", body)
    if is_detached:
        answer.say(f"Successfully trigger manual savepoint, triggerId: {request['request-id']}")
        answer.give({"job-id": found.job_id, **request})
        return
    answer.say("Waiting for response...")
    location = _path_of_savepoint(found, request)
    _say_where_it_is(answer, location)
    answer.give({"job-id": found.job_id, "location": location})


def _savepoint_of_checkpoint(
    path: str, directory: str | None, format_type: str, configuration: Mapping[str, str], answer: Answer
) -> None:
    from penstock.checkpoint.savepoints import write_savepoint_of

    target = directory or Configuration.from_dict(configuration).get_optional(keys.SAVEPOINT_DIR)
    if target is None:
        raise CheckpointError(
            f"where to? Name a folder after {path}, or set {keys.SAVEPOINT_DIR.key} in the configuration"
        )
    answer.say(f"Writing a savepoint of the checkpoint {path}.")
    location = write_savepoint_of(path, target, format_type.lower())
    _say_where_it_is(answer, location)
    answer.give({"location": location})


def _dispose(path: str, manager: Address | None, answer: Answer) -> None:
    answer.say(f"Disposing savepoint '{path}'.")
    if manager is None:
        from penstock.checkpoint.savepoints import dispose_savepoint

        dispose_savepoint(path)
    else:
        client = RestClient(manager)
        request = client.post("/savepoint-disposal", {"savepoint-path": path})
        answer.say("Waiting for response...")
        wait_for_operation(client, "/savepoint-disposal", request)
    answer.say(f"Savepoint '{path}' disposed.")
    answer.give({"disposed": path})


@click.command(cls=JobCommand)
@click.argument("job", shell_complete=complete_job)
@click.option("-full", "--full", "is_full", is_flag=True, help="A whole checkpoint, not only what changed.")
@job_options
def checkpoint(
    job: str, is_full: bool, manager: Address | None, answer: Answer, configuration: Mapping[str, str]
) -> None:
    """Write a checkpoint of a running job now. JOB is its id, or the beginning of it."""
    found = locate(job, manager)
    kind = "FULL" if is_full else "CONFIGURED"
    answer.say(f"Triggering checkpoint for job {found.job_id}.")
    request = found.client.post(f"/jobs/{found.job_id}/checkpoints", {"checkpointType": kind})
    answer.say("Waiting for response...")
    checkpoint_id = wait_for_operation(found.client, f"/jobs/{found.job_id}/checkpoints", request)["checkpointId"]
    answer.say(f"Checkpoint({kind}) {checkpoint_id} for job {found.job_id} completed.")
    answer.give({"job-id": found.job_id, "checkpoint-id": checkpoint_id})


def _job_and_directory(job: str | None, directory: str | None, flag: str) -> tuple[str, str | None]:
    """The job and the folder; in `stop -p ID`, the flag has taken the job's id for its folder."""
    if job is None and directory and is_job_id(directory):
        return directory, _USE_DEFAULT
    if job is None:
        hint = f"; {flag} took {directory!r} as its folder" if directory else ""
        raise click.UsageError(f"which job? Give its id, or the beginning of it{hint}; `penstock list` shows the jobs")
    return job, directory
