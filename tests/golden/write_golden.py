"""Writes savepoints of the golden job, in both formats, and a checkpoint, with what must come after each of them.

    python tests/golden/write_golden.py VERSION

Run it once for each version of Penstock that is released, into a folder of its own, and commit what it writes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from golden_runs import ActsAt, lines_after, master_of

from penstock.checkpoint.finding import find_checkpoint

HERE = Path(__file__).parent
PARALLELISM = {"canonical": 1, "native": 2, "checkpoint": 2}
"""A canonical savepoint has a file for each state and subtask, and all of this is to stay small."""


def write_savepoint(format_type: str, scratch: Path) -> Path:
    """The folder of a savepoint with which the job was stopped."""
    answers = []
    executor = ActsAt(4, lambda: answers.append(master.stop_with_savepoint(str(scratch), False, format_type)))
    master = master_of(scratch / "before", PARALLELISM[format_type], {}, executor)
    master.run()
    return Path(answers[0].result().removeprefix("file://"))


def write_checkpoint(scratch: Path) -> Path:
    """The folder of the checkpoints of a cancelled job: a base, and changes since."""
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(scratch / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    executor = ActsAt(4, lambda: master.cancel())
    master = master_of(scratch / "before", PARALLELISM["checkpoint"], settings, executor)
    master.run()
    [folder] = (scratch / "checkpoints").iterdir()
    needed = {handle.name for handle in find_checkpoint(str(folder)).metadata.handles()}
    for left in [path for path in (folder / "shared").iterdir() if f"shared/{path.name}" not in needed]:
        left.unlink()  # Of the epoch that was cancelled.
    return folder


def main(version: str) -> None:
    target = HERE / version
    target.mkdir()
    for name in ("canonical", "native", "checkpoint"):
        with tempfile.TemporaryDirectory() as scratch:
            written = write_checkpoint(Path(scratch)) if name == "checkpoint" else write_savepoint(name, Path(scratch))
            shutil.move(written, target / name)
        time.sleep(2.5)  # Until the timers are due, and what is short-lived has expired.
        with tempfile.TemporaryDirectory() as scratch:
            runs = [lines_after(target / name, width, Path(scratch, str(width))) for width in (1, 2, 3)]
        assert runs[0] == runs[1] == runs[2], "the job must give the same at every parallelism"
        (target / f"{name}.after.txt").write_text("".join(f"{line}\n" for line in runs[0]), encoding="utf-8")
        print(f"{name}: {len(runs[0])} lines after it")


if __name__ == "__main__":
    main(*sys.argv[1:])
