"""Calls that nobody waits for any more, such as those of a store that never answers.

A thread cannot be ended from outside. If the call returns after all, what would have followed it must not happen: the
job is over by then, and another one may have continued it.
"""

from __future__ import annotations

from contextvars import ContextVar

from penstock.common.exceptions import AbandonedError


class Wanted:
    """Whether somebody still waits for what a thread, and those that it has work for it, are doing."""

    def __init__(self) -> None:
        self.is_abandoned = False


_wanted: ContextVar[Wanted | None] = ContextVar("wanted", default=None)


def work_for(wanted: Wanted) -> None:
    """From now on this thread works for whoever waits. A thread that gets a copy of its context does, too."""
    _wanted.set(wanted)


def check_wanted() -> None:
    """Raise AbandonedError if nobody waits for what this thread does. Called before what others can see."""
    wanted = _wanted.get()
    if wanted is not None and wanted.is_abandoned:
        raise AbandonedError("the job has ended without waiting for this")
