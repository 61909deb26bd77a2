"""What the shell offers for a word that is being typed, where the word is neither a verb nor a flag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell looks for files itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Jobs of this user on this machine: job managers elsewhere are not asked while the user types."""
    from penstock.rest import sockets

    matching = [job for job in sockets.announced_jobs() if job.startswith(incomplete)]
    return [job for job in matching if sockets.socket_of(job) is not None]
