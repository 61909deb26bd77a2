"""Where the user's modules were before they were shipped to this process, so that errors name files that users know."""

from __future__ import annotations

import os
import traceback

_origins: dict[str, str] = {}


def remember_origin(folder: str, origin: str) -> None:
    """Remember that the files in `folder` on this machine were in `origin` when the job was submitted."""
    _origins[os.path.realpath(folder)] = origin


def as_submitted(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames with the names that their files had when the job was submitted."""
    for frame in frames if _origins else ():
        # Reading `line` also caches it. That must happen before the renaming: the original file may not exist here.
        if frame.line is not None:
            frame.filename = _original(frame.filename)
    return frames


def _original(filename: str) -> str:
    path = os.path.realpath(filename)
    for folder, origin in _origins.items():
        if path.startswith(folder + os.sep):
            return origin + path[len(folder) :]
    return filename
