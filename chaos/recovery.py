"""What somebody does whose job has died or was stopped: look for its last checkpoint or savepoint to start it from."""

from __future__ import annotations

from pathlib import Path


def folder_to_restore(checkpoints: Path, savepoints: Path) -> str | None:
    """The newest savepoint, or the folder of the job with the newest complete checkpoint; None if there is neither.

    Each start is a job of its own, with a folder of its own. The one before has left its last checkpoint or savepoint,
    until the new one, which claims it, has its first checkpoint.
    """
    written = [*checkpoints.glob("*/chk-*/_metadata"), *savepoints.glob("*/_metadata")]
    if not written:
        return None
    newest = max(written, key=lambda path: path.stat().st_mtime_ns).parent
    return str(newest if newest.parent == savepoints else newest.parent)
