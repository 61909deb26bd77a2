"""`penstock jobmanager`: a long-running process that runs the jobs of its clients."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import click

from penstock.cli.errors import complain
from penstock.cli.job_options import Answer, JobCommand, common_options
from penstock.cluster.job_manager_process import JobManagerFiles, run_job_manager, running_job_managers
from penstock.common import config_keys as keys
from penstock.common.config_checks import check_keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.private_folder import open_new
from penstock.rest import sockets
from penstock.rest.client import LEADERSHIP, Address, RestClient, RestClientError
from penstock.rest.polling import poll
from penstock.rest.security.access import LOOPBACK, page_address
from penstock.rest.security.access_token import configured_token, own_token

_STARTS_WITHIN_S = 120
_ENDS_WITHIN_S = 60
_LINES_OF_LOG = 20

_port_option = click.option("--port", type=click.IntRange(1, 65535), help="Default: rest.port, 8081.")


@click.group()
def jobmanager() -> None:
    """Run many jobs on one Spark session."""


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

    It listens on this machine only, unless rest.bind-address says otherwise. Commands of the same user find the token
    that it needs by themselves; `penstock jobmanager token` prints it for others.
    """
    settings = dict(configuration)
    if port is not None:
        settings[keys.REST_PORT.key] = str(port)
        settings.pop(keys.REST_BIND_PORT.key, None)
    if master is not None:
        settings["spark.master"] = master
    config = Configuration.from_dict(settings)
    check_keys(config)
    if is_daemon:
        _start_daemon(config, log, answer)
    elif log is not None:
        raise click.UsageError("--log goes with --daemon; without it the log goes to the terminal")
    else:
        run_job_manager(config)


def _start_daemon(config: Configuration, log: Path | None, answer: Answer) -> None:
    port = config.get(keys.REST_PORT)
    files = JobManagerFiles(port)
    has_choice = config.get_optional(keys.REST_BIND_PORT) is not None  # Of several ports, it takes one that is free.
    if not has_choice and (running := files.running_pid()) is not None:
        raise EnvironmentSetupError(f"a job manager for port {port} runs already, as process {running}")
    log = (log or files.log).absolute()
    with _settings_file(config) as settings, _opened(log) as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "jobmanager", "start", "--conf", str(settings)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        answer.say(f"Starting a job manager, log file {log}")
        started = poll(lambda: _started(process), _STARTS_WITHIN_S)
    if not isinstance(started, JobManagerFiles):
        process.kill()
        raise EnvironmentSetupError(f"the job manager did not start; the end of {log}:\n{_end_of(log)}")
    port = started.port
    answer.say(f"Job manager {process.pid} listens on localhost:{port}")
    if config.get(keys.WEB_UI_ENABLED):
        answer.say(f"Dashboard: `penstock jobmanager token --url --port {port}` prints its address")
    answer.give({"pid": process.pid, "port": port, "log": str(log)})


@contextlib.contextmanager
def _settings_file(config: Configuration) -> Iterator[Path]:
    """Settings for another process in a file: they may contain secrets, and everyone can read a command line."""
    file = sockets.folder() / f"settings-{secrets.token_hex(8)}.yaml"
    try:
        with open_new(file) as out:
            out.write(json.dumps(config.to_dict()).encode())
        yield file
    finally:
        file.unlink(missing_ok=True)


def _opened(log: Path) -> IO[bytes]:
    """The log, to append to. It holds what jobs print, so a new file is for its owner alone."""
    return open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _started(process: subprocess.Popen[bytes]) -> JobManagerFiles | Literal["ended"] | None:
    """The files of the job manager that runs as this process once it answers; None while it starts."""
    if process.poll() is not None:
        return "ended"
    for files in running_job_managers():  # Its port may be any of those that it was given.
        if files.running_pid() == process.pid and files.socket.exists():
            return files if (_leadership(files) or _overview(files)) is not None else None
    return None


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:])


def _overview(files: JobManagerFiles) -> dict[str, Any] | None:
    return _asked(files, "/overview")


def _leadership(files: JobManagerFiles) -> dict[str, Any] | None:
    """Which job manager leads, if there are several for one cluster."""
    return _asked(files, LEADERSHIP)


def _asked(files: JobManagerFiles, path: str) -> dict[str, Any] | None:
    try:
        answer: dict[str, Any] = RestClient(Address(files.socket)).get(path)
    except RestClientError:
        return None
    return answer


@jobmanager.command(cls=JobCommand)
@_port_option
@common_options
def status(port: int | None, answer: Answer, configuration: Any) -> None:
    """Say whether a job manager runs, and what it does.

    Without --port, it is the job manager for rest.port, or else the only one of this user on this machine. Ends with 1
    if there is none.
    """
    files = JobManagerFiles(_port(port, configuration))
    if port is None and files.running_pid() is None and (others := running_job_managers()):
        if len(others) > 1:
            ports = ", ".join(str(each.port) for each in others)
            complain(f"there is no job manager for port {files.port}, but for {ports}; choose one with --port")
            sys.exit(1)
        (files,) = others
    pid, leadership = files.running_pid(), _leadership(files)
    if pid is not None and leadership is not None and leadership["role"] != "leader":
        answer.say(f"Job manager {pid} on port {files.port} stands by; leader: {leadership['leader'] or 'none now'}")
        answer.give({"pid": pid, "port": files.port, "high-availability": leadership})
        return
    overview = _overview(files)
    if pid is None or overview is None:
        state = "There is no job manager" if pid is None else f"Process {pid} does not answer as job manager"
        complain(f"{state} for port {files.port}; `penstock jobmanager start` starts one")
        sys.exit(1)
    ended = {word: overview[f"jobs-{word}"] for word in ("finished", "cancelled", "failed")}
    counts = ", ".join(f"{count} {word}" for word, count in ended.items())
    role = "" if leadership is None else " leads"
    answer.say(f"Job manager {pid} on port {files.port}{role}: {overview['jobs-running']} running jobs, {counts}")
    answer.give({"pid": pid, "port": files.port, **overview, "high-availability": leadership})


@jobmanager.command(cls=JobCommand)
@_port_option
@click.option("--url", "is_url", is_flag=True, help="Print the address of the dashboard with the token in it.")
@common_options
def token(port: int | None, is_url: bool, answer: Answer, configuration: Any) -> None:
    """Print the token that clients of a job manager need.

    The job manager is that of this user on this machine.
    """
    config = Configuration.from_dict(configuration)
    port = port or config.get(keys.REST_PORT)
    found = configured_token(config) or own_token(port)
    if found is None:
        complain(
            f"there is no token for port {port}; `penstock jobmanager start` starts a job manager, which makes one"
        )
        sys.exit(1)
    url = page_address(f"{LOOPBACK}:{port}", found, config.get(keys.SSL_REST_ENABLED))
    answer.say(url if is_url else found.secret)
    answer.give({"port": port, "token": found.secret, "url": url})


@jobmanager.command(cls=JobCommand)
@_port_option
@common_options
def stop(port: int | None, answer: Answer, configuration: Any) -> None:
    """Stop the job manager of this user on this machine.

    Its running jobs are cancelled. With high availability, they continue at the job manager that leads next.
    """
    files = JobManagerFiles(_port(port, configuration))
    pid = files.running_pid()
    if pid is None:
        complain(f"there is no job manager for port {files.port}")
        sys.exit(1)
    with contextlib.suppress(ProcessLookupError):  # It has just ended by itself.
        os.kill(pid, signal.SIGTERM)
    if poll(lambda: True if files.running_pid() is None else None, _ENDS_WITHIN_S) is None:
        raise EnvironmentSetupError(f"process {pid} was asked to end, but has not ended within {_ENDS_WITHIN_S} s")
    answer.say(f"Stopped job manager {pid}.")
    answer.give({"pid": pid, "port": files.port})


def _port(given: int | None, configuration: dict[str, str]) -> int:
    return given or Configuration.from_dict(configuration).get(keys.REST_PORT)
