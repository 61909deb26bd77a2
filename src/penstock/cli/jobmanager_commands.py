"""`penstock jobmanager`: a process that stays and runs the jobs that clients bring."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from penstock.cli.errors import complain
from penstock.cli.job_options import Answer, JobCommand, common_options
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError
from penstock.rest.client import LEADERSHIP, Address, RestClient, RestClientError
from penstock.rest.job_manager_process import JobManagerFiles, run_job_manager
from penstock.rest.polling import poll

_STARTS_WITHIN_S = 120
_ENDS_WITHIN_S = 60
_LINES_OF_LOG = 20

_port_option = click.option("--port", type=click.IntRange(1, 65535), help="Default: rest.port, 8081.")


@click.group()
def jobmanager() -> None:
    """Run many jobs on one Spark session: start, stop, status."""


@jobmanager.command(cls=JobCommand)
@_port_option
@click.option("--daemon", "is_daemon", is_flag=True, help="Go to the background once it answers.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="With --daemon: the log file.")
@click.option("--master", metavar="URL", help="Spark master, such as local[16] or spark://host:7077.")
@common_options
def start(
    port: int | None,
    is_daemon: bool,
    log: Path | None,
    master: str | None,
    answer: Answer,
    configuration: Any,
    **_: Any,
) -> None:
    """Start a job manager. Hand it jobs with `penstock run -m localhost:8081 job.py`.

    It listens on this machine only, unless rest.bind-address says otherwise: whoever reaches it can run programs.
    """
    settings = dict(configuration)
    if port is not None:
        settings[keys.REST_PORT.key] = str(port)
        settings.pop(keys.REST_BIND_PORT.key, None)
    if master is not None:
        settings["spark.master"] = master
    config = Configuration.from_dict(settings)
    keys.check_keys(config)
    if is_daemon:
        _start_daemon(config, log, answer)
    elif log is not None:
        raise click.UsageError("--log goes with --daemon; without it the log goes to the terminal")
    else:
        run_job_manager(config)


def _start_daemon(config: Configuration, log: Path | None, answer: Answer) -> None:
    port = config.get(keys.REST_PORT)
    files = JobManagerFiles(port)
    if (running := files.running_pid()) is not None:
        raise EnvironmentSetupError(f"a job manager for port {port} runs already, as process {running}")
    log = (log or files.log).absolute()
    settings = [word for key, value in config.to_dict().items() for word in ("-D", f"{key}={value}")]
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "jobmanager", "start", *settings],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    answer.say(f"Starting a job manager, log file {log}")
    state = poll(lambda: _state_of(process, files), _STARTS_WITHIN_S)
    if state != "ready":
        process.kill()
        raise EnvironmentSetupError(f"the job manager did not start; the end of {log}:\n{_end_of(log)}")
    answer.say(f"Job manager {process.pid} listens on localhost:{port}")
    answer.give({"pid": process.pid, "port": port, "log": str(log)})


def _state_of(process: subprocess.Popen[bytes], files: JobManagerFiles) -> str | None:
    """`ended`, `ready`, or None while it starts."""
    if process.poll() is not None:
        return "ended"
    is_ready = files.socket.exists() and (_leadership(files) or _overview(files)) is not None
    return "ready" if is_ready else None


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:])


def _overview(files: JobManagerFiles) -> dict[str, Any] | None:
    return _asked(files, "/overview")


def _leadership(files: JobManagerFiles) -> dict[str, Any] | None:
    """Who leads, if there are several job managers for one cluster."""
    return _asked(files, LEADERSHIP)


def _asked(files: JobManagerFiles, path: str) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = RestClient(Address(files.socket)).get(path)
    except RestClientError:
        return None
    return told


@jobmanager.command(cls=JobCommand)
@_port_option
@common_options
def status(port: int | None, answer: Answer, configuration: Any) -> None:
    """Say whether a job manager runs, and what it does. Ends with 1 if there is none."""
    files = JobManagerFiles(_port(port, configuration))
    pid, leadership = files.running_pid(), _leadership(files)
    if pid is not None and leadership is not None and leadership["role"] != "leader":
        answer.say(f"Job manager {pid} on port {files.port} stands by; leader: {leadership['leader'] or 'none now'}")
        answer.give({"pid": pid, "port": files.port, "high-availability": leadership})
        return
    told = _overview(files)
    if pid is None or told is None:
        state = "There is no job manager" if pid is None else f"Process {pid} does not answer as job manager"
        complain(f"{state} for port {files.port}; `penstock jobmanager start` starts one")
        sys.exit(1)
    ended = {word: told[f"jobs-{word}"] for word in ("finished", "cancelled", "failed")}
    counts = ", ".join(f"{count} {word}" for word, count in ended.items())
    role = "" if leadership is None else " leads"
    answer.say(f"Job manager {pid} on port {files.port}{role}: {told['jobs-running']} running jobs, {counts}")
    answer.give({"pid": pid, "port": files.port, **told, "high-availability": leadership})


@jobmanager.command(cls=JobCommand)
@_port_option
@common_options
def stop(port: int | None, answer: Answer, configuration: Any) -> None:
    """Stop the job manager of this user on this machine. Jobs that run are cancelled.

    With high availability they go on at the job manager that leads next.
    """
    files = JobManagerFiles(_port(port, configuration))
    pid = files.running_pid()
    if pid is None:
        complain(f"there is no job manager for port {files.port}")
        sys.exit(1)
    os.kill(pid, signal.SIGTERM)
    if poll(lambda: True if files.running_pid() is None else None, _ENDS_WITHIN_S) is None:
        raise EnvironmentSetupError(f"process {pid} was told to end, but has not within {_ENDS_WITHIN_S} s")
    answer.say(f"Stopped job manager {pid}.")
    answer.give({"pid": pid, "port": files.port})


def _port(given: int | None, configuration: dict[str, str]) -> int:
    return given or Configuration.from_dict(configuration).get(keys.REST_PORT)
