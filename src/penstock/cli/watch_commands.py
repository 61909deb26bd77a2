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
from penstock.rest.client import Address, RestClientError

if TYPE_CHECKING:
    from rich.table import Table

_FOLLOWED_EVERY_S = 0.5


@click.command(cls=JobCommand)
@click.argument("job", metavar="JOB_ID", shell_complete=complete_job)
@job_options
def status(job: str, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show what a job is doing: rates, watermark, backpressure, last checkpoint, last failure."""
    located = locate(job, manager)
    told = located.client.get(f"/jobs/{located.job_id}/progress")
    for line in text.status_lines(told, _now_ms()):
        answer.say(line)
    answer.give(told)


@click.command(cls=JobCommand)
@click.argument("job", metavar="JOB_ID", shell_complete=complete_job)
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the job ends, or Ctrl-C.")
@job_options
def logs(job: str, follows: bool, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show the log of a job: what its functions have logged, and Penstock about it."""
    located = locate(job, manager)
    if answer.is_json:
        answer.give(located.client.get(f"/jobs/{located.job_id}/log"))
        return
    after = _show_log(located, -1)
    try:
        while follows and not located.has_ended:
            time.sleep(_FOLLOWED_EVERY_S)
            # First: what was logged before its end is shown, too.
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
    """Print what came after a line; the number of the last one."""
    for line in job.client.get(f"/jobs/{job.job_id}/log", after=str(after))["lines"]:
        click.echo(line["text"])
        after = line["number"]
    return after


@click.command(cls=JobCommand)
@click.option("--interval", type=float, default=1.0, show_default=True, help="Seconds between two looks.")
@job_options
def top(interval: float, manager: Address | None, answer: Answer, configuration: Mapping[str, str]) -> None:
    """Show all jobs, over and over, until Ctrl-C; where there is no terminal, once."""
    if interval <= 0:
        raise click.BadParameter(f"must be positive, got {interval}", param_hint="--interval")
    told = _all_progress(manager)
    if answer.is_json or not sys.stdout.isatty():
        from rich.console import Console

        if not answer.is_json:
            Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(_table(told))
        answer.give({"jobs": told})
        return
    _watch(manager, interval)


def _watch(manager: Address | None, interval: float) -> None:
    from rich.live import Live

    try:
        with Live(_table(_all_progress(manager)), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                live.update(_table(_all_progress(manager)), refresh=True)
    except KeyboardInterrupt:
        return


def _all_progress(manager: Address | None) -> list[dict[str, Any]]:
    """Running jobs first, then ended ones, newest first."""
    told = [each for job in all_jobs(manager) if (each := _progress(job)) is not None]
    return sorted(told, key=lambda each: (each["end-time"] >= 0, -each["start-time"]))


def _progress(job: LocatedJob) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = job.client.get(f"/jobs/{job.job_id}/progress")
    except RestClientError as error:
        if error.status in (None, 404):  # It has ended since, and its process with it.
            return None
        raise
    return told


_STYLES = {"RUNNING": "green", "FAILED": "red", "FAILING": "red", "RESTARTING": "yellow", "CANCELED": "dim"}


def _table(jobs: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    running = sum(each["end-time"] < 0 for each in jobs)
    title = f"{running} running, {len(jobs) - running} ended, {time.strftime('%H:%M:%S')}"
    table = Table(title=title, title_justify="left", caption="Ctrl-C ends", caption_justify="left", expand=True)
    for name in ("JOB", "ID", "STATE"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("TIME", "RECORDS", "/S", "LAG", "BUSY", "BACKPR.", "CHECKPOINT", "RESTARTS"):
        table.add_column(name, justify="right", no_wrap=True)
    now_ms = _now_ms()
    for each in jobs:
        state = each["state"] if each["share-done"] is None else f"{each['state']} {each['share-done']:.0%}"
        table.add_row(
            Text(each["name"]),
            each["jid"][:8],
            Text(state, style=_STYLES.get(each["state"], "")),
            text.duration(each["duration"]),
            text.count(each["records"]),
            text.count(each["records-per-second"]),
            "" if each["watermark-lag"] is None else text.duration(each["watermark-lag"]),
            f"{each['busy']['share']:.0%}",
            each["backpressure"]["level"],
            "" if each["checkpoint"] is None else f"{text.duration(now_ms - each['checkpoint']['completed'])} ago",
            str(each["restarts"]),
        )
    return table


def _now_ms() -> int:
    return int(time.time() * 1000)
