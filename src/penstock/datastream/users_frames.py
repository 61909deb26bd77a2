"""A failure shows the user's frames, not a dozen of Penstock's: in a script, at a prompt, in a notebook."""

from __future__ import annotations

import os
from types import TracebackType

from penstock.common.exceptions import PenstockError


class ShowingUsersFrames:
    """Errors of Penstock leave it without the frames below; PENSTOCK_DEBUG=1 keeps them.

    The message has the frames of a function that failed. What is cut are those of Penstock itself, which lead from the
    call that the user wrote to the place that found the error. Notebooks also leave out frames that say so
    (`__tracebackhide__`).
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, frames: TracebackType | None) -> None:
        __tracebackhide__ = True
        if isinstance(error, PenstockError) and not os.environ.get("PENSTOCK_DEBUG"):
            if error.__cause__ is not None:
                error.__cause__.__traceback__ = None
            raise error.with_traceback(None) from error.__cause__
