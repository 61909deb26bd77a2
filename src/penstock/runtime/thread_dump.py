"""What the threads of a process are doing."""

from __future__ import annotations

import sys
import threading
import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class ThreadInfo:
    name: str
    text: str
    """The name, and the frames from the outermost to the current one."""


@dataclass(frozen=True)
class ProcessThreads:
    """The threads of one process."""

    host: str
    process: int
    threads: tuple[ThreadInfo, ...]


def threads_here() -> tuple[ThreadInfo, ...]:
    """All threads of this process, by name."""
    frames = sys._current_frames()
    return tuple(
        ThreadInfo(
            thread.name,
            f'"{thread.name}" Id={thread.ident}{" daemon" if thread.daemon else ""}\n'
            + "".join(traceback.format_stack(frames[thread.ident]) if thread.ident in frames else ()),
        )
        for thread in sorted(threading.enumerate(), key=lambda thread: thread.name)
    )
