"""A failure shows the user's frames, not a dozen of Penstock's: in a script, at a prompt, in a notebook."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType, TracebackType

from penstock.common.exceptions import PenstockError


class ShowingUsersFrames:
    """A context that Penstock's errors leave without the frames below it; PENSTOCK_DEBUG=1 keeps them.

    The message has the frames of a function that failed. Those of Penstock itself, which lead from the user's call to
    the place that found the error, are cut. Notebooks also leave out frames that say so (`__tracebackhide__`).
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, frames: TracebackType | None) -> None:
        __tracebackhide__ = True
        if isinstance(error, PenstockError) and not os.environ.get("PENSTOCK_DEBUG"):
            if error.__cause__ is not None:
                error.__cause__.__traceback__ = None
            raise error.with_traceback(None) from error.__cause__


_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def users_line() -> str | None:
    """The line of the program that led here, as `job.py:7: env.read_text_file(...)`; None if there is none to show."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frame = frame.f_back
    if frame is None:
        return None
    file = frame.f_code.co_filename
    line = linecache.getline(file, frame.f_lineno, frame.f_globals).strip()
    return f"{file}:{frame.f_lineno}: {line}" if line else None
