"""The verbs for looking at running jobs: status, top, logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import progress_text as text
from penstock.cli.completion import complete_job
from penstock.cli.job_options import Answer, JobCommand, job_options
from penstock.cli.locate import ENDED, LocatedJob, all_jobs, locate
from penstock.common.clocks import wall_clock_ms
from penstock.rest.client import Address, RestClientError

if TYPE_CHECKING:
    from rich.table import Table

_FOLLOWED_EVERY_S = 0.5


@click.command(cls=JobCommand)
@click.argument("job", metavar="JOB", shell_complete=complete_job)
@job_options
def status(job: str, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show what a job is doing. JOB is its id, or the beginning of it.

    Shows rates, watermark, backpressure, the last checkpoint and the last failure.
    """
    located = locate(job, manager)
    progress = located.client.get(f"/jobs/{located.job_id}/progress")
    for line in text.status_lines(progress, wall_clock_ms()):
        answer.say(line)
    answer.give(progress)


@click.command(cls=JobCommand)
@click.argument("job", metavar="JOB", shell_complete=complete_job)
@click.option("-f", "--follow", "follows", is_flag=True, help="Print new lines until the job ends, or until Ctrl-C.")
@job_options
def logs(job: str, follows: bool, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show the log of a job. JOB is its id, or the beginning of it.

    The log has what the job's functions log, and what Penstock logs about the job.
    """
    located = locate(job, manager)
    if answer.is_json:
        answer.give(located.client.get(f"/jobs/{located.job_id}/log"))
        return
    after = _show_log(located, -1)
    try:
        while follows and not located.has_ended:
            time.sleep(_FOLLOWED_EVERY_S)
            # Asked for first, so that what was logged before the end is shown, too.
            state = located.client.get(f"/jobs/{located.job_id}/status")["status"]
            after = _show_log(located, after)
            if state in ENDED:
                return
    except KeyboardInterrupt:
        return
    except RestClientError as error:
        if error.status not in (None, 404):  # Otherwise its process has ended, and with it the job.
            raise


def _show_log(job: LocatedJob, after: int) -> int:
    """Print the lines after number `after`; returns the number of the last one."""
    for line in job.client.get(f"/jobs/{job.job_id}/log", after=str(after))["lines"]:
        click.echo(line["text"])
        after = line["number"]
    return after


@click.command(cls=JobCommand)
@click.option("--interval", type=float, default=1.0, show_default=True, help="Seconds between two updates.")
@job_options
def top(interval: float, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show all jobs, and refresh the list until Ctrl-C.

    Without a terminal, the list is printed once.
    """
    if interval <= 0:
        raise click.BadParameter(f"must be positive, got {interval}", param_hint="--interval")
    progress = _all_progress(manager)
    if answer.is_json or not sys.stdout.isatty():
        from rich.console import Console

        if not answer.is_json:
            console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
            console.print(_table(progress, console.width))
        answer.give({"jobs": progress})
        return
    _watch(manager, interval)


def _watch(manager: Address | None, interval: float) -> None:
    from rich.live import Live

    try:
        with Live(screen=True, auto_refresh=False) as live:
            while True:
                live.update(_table(_all_progress(manager), live.console.width), refresh=True)
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def _all_progress(manager: Address | None) -> list[dict[str, Any]]:
    """Running jobs first, then ended ones, newest first."""
    progress = [each for job in all_jobs(manager) if (each := _progress(job)) is not None]
    return sorted(progress, key=lambda each: (each["end-time"] >= 0, -each["start-time"]))


def _progress(job: LocatedJob) -> dict[str, Any] | None:
    try:
        progress: dict[str, Any] = job.client.get(f"/jobs/{job.job_id}/progress")
    except RestClientError as error:
        if error.status in (None, 404):  # It has ended since, and its process with it.
            return None
        raise
    return progress


_STYLES = {"RUNNING": "green", "FAILED": "red", "FAILING": "red", "RESTARTING": "yellow", "CANCELED": "dim"}


_COLUMNS = ("ID", "STATE", "TIME", "RECORDS", "/S", "LAG", "BUSY", "BACKPR.", "CHECKPOINT", "RESTARTS")
_LEFT_OUT_FIRST = ("BUSY", "RESTARTS", "RECORDS", "TIME", "CHECKPOINT", "BACKPR.")
_NAME_WIDTH = 16
"""The least room for a job's name; figures are never cut."""
_GAP = 2


def _table(jobs: list[dict[str, Any]], width: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = [_cells(each, wall_clock_ms()) for each in jobs]
    columns = _columns_within(width, rows)
    running = sum(each["end-time"] < 0 for each in jobs)
    title = f"{running} running, {len(jobs) - running} ended, {time.strftime('%H:%M:%S')}"
    table = Table(
        title=title,
        title_justify="left",
        caption="Ctrl-C ends" if jobs else "No jobs. `penstock run job.py` starts one; Ctrl-C ends",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, _GAP - 1, 0, 0),  # The box has a column of its own between two.
        pad_edge=False,
        show_edge=False,
        expand=True,
    )
    table.add_column("JOB", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in columns:
        table.add_column(name, justify="left" if name in ("ID", "STATE") else "right", no_wrap=True)
    for job, row in zip(jobs, rows, strict=True):
        styles = {"STATE": _STYLES.get(job["state"], "")}
        table.add_row(Text(job["name"]), *(Text(row[name], style=styles.get(name, "")) for name in columns))
    return table


def _cells(job: dict[str, Any], now_ms: int) -> dict[str, str]:
    """What is shown of a job besides its name, by column."""
    is_under_way = job["share-done"] is not None and job["end-time"] < 0
    checkpoint = job["checkpoint"]
    return {
        "ID": job["jid"][:8],
        "STATE": f"{job['state']} {job['share-done']:.0%}" if is_under_way else job["state"],
        "TIME": text.duration(job["duration"]),
        "RECORDS": text.count(job["records"]),
        "/S": text.count(job["records-per-second"]),
        "LAG": "" if job["watermark-lag"] is None else text.duration(max(0, job["watermark-lag"])),
        "BUSY": f"{job['busy']['share']:.0%}",
        "BACKPR.": job["backpressure"]["level"],
        "CHECKPOINT": "" if checkpoint is None else f"{text.duration(max(0, now_ms - checkpoint['completed']))} ago",
        "RESTARTS": str(job["restarts"]),
    }


def _columns_within(width: int, rows: list[dict[str, str]]) -> list[str]:
    """The columns for which there is room; the least important ones are left out."""
    columns = list(_COLUMNS)
    for name in _LEFT_OUT_FIRST:
        taken = sum(_GAP + max(len(each), *(len(row[each]) for row in rows), 0) for each in columns)
        if _NAME_WIDTH + taken <= width:
            break
        columns.remove(name)
    return columns
