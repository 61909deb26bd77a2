"""What somebody does whose job has died: look for its last checkpoint and start it again from there."""

from __future__ import annotations

from pathlib import Path


def folder_to_restore(checkpoints: Path) -> str | None:
    """The folder of the job with the newest complete checkpoint; None if there is none.

    Each start is a job of its own, with a folder of its own. The one before has left its last checkpoint, until the new
    one, which claims it, has its first.
    """
    complete = [path for path in checkpoints.glob("*/chk-*/_metadata")]
    if not complete:
        return None
    return str(max(complete, key=lambda path: path.stat().st_mtime_ns).parents[1])
