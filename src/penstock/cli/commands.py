"""The verbs: `run` runs a job here, `info` shows its plan without running it; those for running jobs are elsewhere."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from penstock.cli.errors import complain, report
from penstock.cli.job_commands import cancel, checkpoint, list_jobs, savepoint, stop
from penstock.cli.jobmanager_commands import jobmanager
from penstock.cli.options import ProgramCommand, Request, program_options, read_request
from penstock.common.exceptions import PenstockError
from penstock.compat.pyflink_alias import pyflink_as_penstock
from penstock.datastream.launch import Launch, PlanOnlyExit, launching
from penstock.datastream.submission import Submission
from penstock.graph.drawing import draw_svg, draw_text
from penstock.graph.job_graph import JobGraph

PLAN_HEADER = "----------------------- Execution Plan -----------------------"
INTERRUPTED = 130


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="penstock")
def main() -> None:
    """Penstock: Flink's DataStream jobs on Spark."""


@main.command(cls=ProgramCommand)
@program_options
def run(**given: Any) -> None:
    """Run a job and wait for its end: in this process, or with -m at a job manager.

    Words after JOB.PY are the job's own arguments. Ctrl-C cancels the job.
    """
    request = _checked(given)
    launch = Launch(configuration=request.configuration, announce=click.echo)
    _guarded(request, lambda: _launch(request, launch))
    if not launch.submitted:
        complain(_nothing_submitted(request))
        sys.exit(1)


@main.command(cls=ProgramCommand)
@program_options
@click.option("--json", "is_json", is_flag=True, help="Print the plan as JSON (Flink's format) and nothing else.")
@click.option("--code", "is_code", is_flag=True, help="Print the Python code generated for the job and nothing else.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Also write a picture to this file.")
def info(is_json: bool, is_code: bool, svg: Path | None, **given: Any) -> None:
    """Show the plan of a job without running it.

    The script runs up to its execute(). Prints a drawing of the plan: a box is a chain of operators that run
    together, an arrow says how records travel. What the script itself prints goes to stderr.
    """
    request = _checked(given)
    launch = Launch(configuration=request.configuration, plan_only=True)
    with contextlib.redirect_stdout(sys.stderr):
        _guarded(request, lambda: _launch(request, launch))
    if not launch.submitted:
        complain(_nothing_submitted(request))
        sys.exit(1)
    job = launch.submitted[0]
    plan, chains = json.loads(job.plan_json), job.job_graph.chains
    if svg is not None:
        try:
            svg.write_text(draw_svg(plan, chains), encoding="utf-8")
        except OSError as error:
            complain(f"--svg {svg}: cannot be written ({error.strerror}); name a file in a folder that exists")
            sys.exit(1)
        click.echo(f"Wrote {svg}", err=True)
    if is_json:
        click.echo(job.plan_json)
    elif is_code:
        _show_code(job.job_graph)
    else:
        click.echo(f"{PLAN_HEADER}\n{job.job_name}\n")
        Console(highlight=False).print(_coloured(draw_text(plan, chains)), soft_wrap=True)


for _verb in (list_jobs, cancel, stop, savepoint, checkpoint, jobmanager):
    main.add_command(_verb)


def _show_code(job_graph: JobGraph) -> None:
    """The generated functions, one after the other; highlighted on terminals only."""
    from rich.syntax import Syntax

    from penstock.runtime.generated_code import sources_of

    text = "\n\n".join(code.as_text() for code in sources_of(job_graph))
    if not text:
        click.echo("No code is generated for this job: it has no two map, flat_map or filter in a row.", err=True)
        return
    Console(highlight=False).print(Syntax(text, "python", theme="ansi_dark").highlight(text), soft_wrap=True, end="")


def _coloured(drawing: str) -> Text:
    """The drawing with parallelism and ship strategies set off, which shows on terminals only."""
    text = Text(drawing)
    text.highlight_regex(r"parallelism \d+", "cyan")
    text.highlight_regex(r"▼ \S+", "green")
    return text


def _nothing_submitted(request: Request) -> str:
    return f"{request.program.target} ended without running a job; call env.execute() at its end"


def _checked(given: dict[str, Any]) -> Request:
    try:
        return read_request(given)
    except PenstockError as error:
        report(error, given["debug"])
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
