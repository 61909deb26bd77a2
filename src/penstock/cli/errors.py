"""What a failed run shows the user: one clear message, and of stack frames only the user's own."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import click

import penstock
from penstock.common.error_notes import notes_of
from penstock.common.exceptions import (
    MADE_AT,
    EnvironmentSetupError,
    JobExecutionError,
    PenstockError,
    UserFunctionError,
)
from penstock.common.redaction import redacted_text

_OWN_FOLDER = str(Path(penstock.__path__[0]).resolve()) + os.sep


class NoSuchFile(click.ClickException):
    exit_code = 2

    def __init__(self, file: str) -> None:
        super().__init__(f"no such file: {file}")

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message)


def complain(message: str) -> None:
    """Print a message for the user on stderr."""
    click.echo(click.style("penstock:", fg="red", bold=True) + f" {redacted_text(message)}", err=True)


def report(error: BaseException, is_debug: bool) -> None:
    """Say on stderr why the run failed; with `is_debug`, the whole stack comes first."""
    if is_debug:
        click.echo(redacted_text("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, PenstockError):
        complain("\n".join([str(error), *_details(error)]))
    elif not is_debug:
        # Python's own way to show it: the only one that says "Did you mean" in all versions.
        frames = _user_frames(error.__traceback__)
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            sys.__excepthook__(type(error), error.with_traceback(frames), frames)
        click.echo(redacted_text(shown.getvalue().rstrip()), err=True)
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "pyflink":
        complain("this is a PyFlink program: run it with `penstock run --pyflink`")


def _details(error: PenstockError) -> Iterator[str]:
    """What the error knows and its message does not say."""
    message = str(error)
    if isinstance(error, UserFunctionError):
        if error.operator and error.operator not in message:
            subtask = "" if error.subtask is None else f", subtask {error.subtask}"
            yield f"  operator: {error.operator}{subtask}"
        if error.record is not None and error.record not in message:
            yield f"  record: {error.record}"
        if error.user_traceback and error.user_traceback.strip() not in message:
            yield from ("  " + line for line in error.user_traceback.rstrip().splitlines())
    elif (
        not isinstance(error, JobExecutionError | EnvironmentSetupError)
        and MADE_AT not in message
        and (place := _place_in_user_code(error.__traceback__))
    ):
        yield place
    yield from notes_of(error)


def _user_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the user's program on, which follows runpy's own."""
    rest, has_started = frames, False
    while rest is not None:
        if "runpy" in os.path.basename(rest.tb_frame.f_code.co_filename):
            has_started = True
        elif has_started:
            return rest
        rest = rest.tb_next
    return None if has_started else frames


def _place_in_user_code(frames: TracebackType | None) -> str | None:
    """The last line of the user's code before the first of Penstock's."""
    place, rest = None, _user_frames(frames)
    while rest is not None:
        file = rest.tb_frame.f_code.co_filename
        if os.path.abspath(file).startswith(_OWN_FOLDER):
            break
        if (line := linecache.getline(file, rest.tb_lineno).strip()) or os.path.exists(file):
            place = f"  at {file}:{rest.tb_lineno}: {line}"
        rest = rest.tb_next
    return place
