"""Runs a user's program for a command, and reports what went wrong."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any

from penstock.cli.errors import complain, report
from penstock.cli.options import Request
from penstock.compat.pyflink_alias import pyflink_as_penstock
from penstock.datastream.launch import Launch, PlanOnlyExit, launching
from penstock.datastream.submission import Submission

INTERRUPTED = 130


def run_program(request: Request, launch: Launch, screen: AbstractContextManager[Any] | None = None) -> None:
    """Run the program inside `screen`; if it or its job fails, exit with a clear message and Flink's exit code."""
    try:
        with screen or contextlib.nullcontext():
            _launch(request, launch)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        report(error, request.is_debug)
        sys.exit(1)
    if not launch.submitted:
        complain(f"{request.program.target} ended without running a job; call env.execute() at its end")
        sys.exit(1)


def _launch(request: Request, launch: Launch) -> None:
    alias = pyflink_as_penstock() if request.is_pyflink else contextlib.nullcontext()
    with launching(launch), alias, contextlib.suppress(PlanOnlyExit):
        request.program.run()
        for client in launch.clients:  # Jobs that the script started with execute_async and left running
            if not client.get_job_execution_result().done():
                Submission(client, launch).wait()
