"""Runs a user's program for a command, and reports what went wrong."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from penstock.cli.errors import complain, report
from penstock.cli.options import Request
from penstock.compat.pyflink_alias import pyflink_as_penstock
from penstock.datastream.launch import Launch, PlanOnlyExit, launching
from penstock.datastream.submission import Submission

INTERRUPTED = 130


def run_program(request: Request, launch: Launch, screen: AbstractContextManager[Any] | None = None) -> None:
    """Run the program; ends this process with a clear message and Flink's exit code if that or its job fails.

    `screen` is there while it runs.
    """

    def launch_program() -> None:
        with screen or contextlib.nullcontext():
            _launch(request, launch)

    _guarded(request, launch_program)
    if not launch.submitted:
        complain(f"{request.program.target} ended without running a job; call env.execute() at its end")
        sys.exit(1)


def _launch(request: Request, launch: Launch) -> None:
    alias = pyflink_as_penstock() if request.is_pyflink else contextlib.nullcontext()
    with launching(launch), alias, contextlib.suppress(PlanOnlyExit):
        request.program.run()
        _wait_for_running(launch)


def _wait_for_running(launch: Launch) -> None:
    """Jobs that the script started with execute_async and left running are its jobs still."""
    for client in launch.clients:
        if not client.get_job_execution_result().done():
            Submission(client, launch).wait()


def _guarded(request: Request, action: Callable[[], None]) -> None:
    """Do something of the user's; end this process with a clear message and Flink's exit code if it fails."""
    try:
        action()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        report(error, request.is_debug)
        sys.exit(1)
