"""The verbs: `run` runs a job here; those that show a plan or control running jobs are elsewhere.

What a verb needs is loaded when it is called: `run` starts Java first of all, and loads the rest meanwhile.
"""

from __future__ import annotations

import difflib
import importlib
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from penstock.cli.options import ProgramCommand, Request, checked_request, program_options
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration

_ELSEWHERE = {
    "info": "info_command:info",
    "list": "job_commands:list_jobs",
    "cancel": "job_commands:cancel",
    "stop": "job_commands:stop",
    "savepoint": "job_commands:savepoint",
    "sql": "sql_command:sql",
    "checkpoint": "job_commands:checkpoint",
    "logs": "watch_commands:logs",
    "status": "watch_commands:status",
    "top": "watch_commands:top",
    "jobmanager": "jobmanager_commands:jobmanager",
}


class Verbs(click.Group):
    """A group of commands that are loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, name = _ELSEWHERE[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(f"penstock.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            verbs = self.list_commands(ctx)
            near = difflib.get_close_matches(args[0], verbs, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"verbs are {', '.join(verbs)}"
            if args[0].endswith(".py"):
                hint = f"to run it: penstock run {args[0]}"
            raise click.UsageError(f"{error.message.rstrip('.')}; {hint}", ctx) from error


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="penstock")
def main() -> None:
    """Penstock: Flink's DataStream jobs on Spark."""


@main.command(cls=ProgramCommand)
@program_options
def run(**given: Any) -> None:
    """Run a job, and wait until it ends.

    It runs in this process, or with -m at a job manager. Words after JOB.PY are the job's own arguments. Ctrl-C cancels
    the job. What the job prints goes to stdout. Its progress goes to stderr: a live line on a terminal, otherwise a
    line every 30 seconds.
    """
    request = checked_request(given)
    java = _start_java(request)
    from penstock.cli.launching import run_program
    from penstock.cli.run_screen import RunScreen, say_what_was_restored
    from penstock.datastream.launch import Launch

    screen = None if request.is_detached else RunScreen()
    launch = Launch(
        configuration=request.configuration,
        # Scripts read the id on stdout of a detached run; of any other, stdout is for results.
        announce=lambda text: click.echo(text, err=not request.is_detached),
        on_start=say_what_was_restored if screen is None else screen.watch,
    )
    try:
        run_program(request, launch, screen)
    finally:
        if java is not None:
            java.end_java()
    if java is not None:
        java.make_class_archive()


def _start_java(request: Request) -> Any:
    """Java for a job that runs on Spark in this process; None for others."""
    config = Configuration.from_dict(request.configuration)
    if config.get(keys.TARGET).lower() not in ("spark", "local"):
        return None
    # Looked up by name: only the package for Spark knows how.
    starter = importlib.import_module("penstock.spark.start_ahead")
    starter.start_java({**os.environ, **request.program.environment()}, config)
    return starter
