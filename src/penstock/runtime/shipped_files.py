"""Where modules of the user's were before they were shipped to this process: errors name the files that users know."""

from __future__ import annotations

import os
import traceback

_origins: dict[str, str] = {}


def remember_origin(folder: str, origin: str) -> None:
    """What lies in `folder` of this machine was in `origin` when the job was submitted."""
    _origins[os.path.realpath(folder)] = origin


def as_submitted(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames with the names that their files had there, and with the lines that they have here."""
    for frame in frames if _origins else ():
        # As soon as it was asked for, the line is kept; the file of that name may be on another machine.
        if frame.line is not None:
            frame.filename = _original(frame.filename)
    return frames


def _original(filename: str) -> str:
    path = os.path.realpath(filename)
    for folder, origin in _origins.items():
        if path.startswith(folder + os.sep):
            return origin + path[len(folder) :]
    return filename
