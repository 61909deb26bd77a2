"""`penstock info`: the plan of a job, drawn, as JSON or as the code that is generated for it."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from penstock.cli.errors import complain
from penstock.cli.launching import run_program
from penstock.cli.options import ProgramCommand, checked_request, program_options
from penstock.datastream.launch import Launch
from penstock.graph.drawing import draw_svg, draw_text
from penstock.graph.job_graph import JobGraph

PLAN_HEADER = "----------------------- Execution Plan -----------------------"


@click.command(cls=ProgramCommand)
@program_options
@click.option("--json", "is_json", is_flag=True, help="Print the plan as JSON (Flink's format) and nothing else.")
@click.option("--code", "is_code", is_flag=True, help="Print the Python loops generated for the job's chains.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Also write a picture to this file.")
def info(is_json: bool, is_code: bool, svg: Path | None, **given: Any) -> None:
    """Show the plan of a job without running it.

    The script runs up to its execute(). Prints a drawing of the plan: a box is a chain of operators that run
    together, an arrow says how records travel. What the script itself prints goes to stderr.
    """
    request = checked_request(given)
    launch = Launch(configuration=request.configuration, plan_only=True)
    with contextlib.redirect_stdout(sys.stderr):
        run_program(request, launch)
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
