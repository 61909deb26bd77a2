"""Samples the stacks of tasks in this process, a hundred times a second, for a flame graph."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import FrameType

Stack = tuple[str, ...]
"""Functions from the outermost to the innermost, each with its file and line."""

_INTERVAL_S = 0.01
_SWITCH_INTERVAL_S = 0.0002
"""How soon the sampler gets its turn while a task runs. After Python's default of 5 ms, a short epoch would be over."""
_DEEPEST = 120
_ENDS_AFTER = 500
"""After this number of samples without a task, the thread ends. The next task starts another one."""

_watched: dict[int, dict[Stack, int]] = {}
"""By thread: where the stacks in which it is seen are counted."""
_lock = threading.Lock()
_sampler: threading.Thread | None = None


@contextlib.contextmanager
def sampling(counts: dict[Stack, int]) -> Iterator[None]:
    """Within this context, count the stacks in which this thread is seen. Of nested contexts, the inner one counts."""
    thread = threading.get_ident()
    with _lock:
        before = _watched.get(thread)
        _watched[thread] = counts
        _start()
    try:
        yield
    finally:
        with _lock:
            if before is None:
                _watched.pop(thread, None)
            else:
                _watched[thread] = before


def _start() -> None:
    global _sampler
    if _sampler is None or not _sampler.is_alive():
        _sampler = threading.Thread(target=_sample, name="penstock-stack-sampler", daemon=True)
        _sampler.start()


def _sample() -> None:
    global _sampler
    pause = threading.Event()
    idle = 0
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    while True:
        pause.wait(_INTERVAL_S)
        frames = sys._current_frames()
        with _lock:
            idle = 0 if _watched else idle + 1
            for thread, counts in _watched.items():
                stack = stack_of(frames.get(thread))
                if stack is not None:
                    counts[stack] = counts.get(stack, 0) + 1
            if idle >= _ENDS_AFTER:
                sys.setswitchinterval(usual_s)
                _sampler = None
                return
        del frames


def stack_of(frame: FrameType | None) -> Stack | None:
    """The calls from where the task begins to the innermost one; None if the thread is not in a task at the moment.

    Of very deep stacks, only the innermost calls are included.
    """
    stack: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run_task" and code.co_filename.endswith("task_host.py"):
            return tuple(reversed(stack[:_DEEPEST]))
        stack.append(f"{code.co_name} ({_short(code.co_filename)}:{frame.f_lineno})")
        frame = frame.f_back
    return None


def _short(path: str) -> str:
    """A short path for people to read: from the package on, or the name of the file alone."""
    for marker in ("/site-packages/", "/src/"):
        if marker in path:
            return path.rpartition(marker)[2]
    return path.rpartition("/")[2]
