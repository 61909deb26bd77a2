"""What the REST API reports about the process that runs jobs: its threads, its log, its Python."""

from __future__ import annotations

import logging
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from penstock.common.redaction import RedactingFormatter
from penstock.jobmaster.job_log import current_job_log
from penstock.runtime.thread_dump import ProcessThreads, threads_here

_REMEMBERED_RECORDS = 2_000
_LONGEST_RECORD = 8_000
LOG_NAME = "penstock.log"


class LogTail(logging.Handler):
    """The last records that Penstock logged in this process, even where nobody has set up a log."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(RedactingFormatter("%(asctime)s %(levelname)-5s %(name)s - %(message)s"))
        self._lines: deque[str] = deque(maxlen=_REMEMBERED_RECORDS)
        self._last_s = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self._lines.append(line[:_LONGEST_RECORD])
        self._last_s = record.created
        job = current_job_log()
        if job is not None:
            job.write(record)
        is_only_handler = not logging.getLogger().handlers and logging.getLogger("penstock").handlers == [self]
        if record.levelno >= logging.WARNING and is_only_handler:
            # Without any handler Python would have shown it, without time and level.
            print(line, file=sys.stderr, flush=True)

    def text(self) -> str:
        return "".join(f"{line}\n" for line in list(self._lines))

    @property
    def last_ms(self) -> int:
        """When the last of them was logged."""
        return int(self._last_s * 1000)


_tail: LogTail | None = None


def log_tail() -> LogTail:
    """The one of this process; it begins with the first call."""
    global _tail
    if _tail is None:
        _tail = LogTail()
        logging.getLogger("penstock").addHandler(_tail)
    return _tail


def thread_dump() -> dict[str, Any]:
    return thread_infos([ProcessThreads(platform.node(), os.getpid(), threads_here())])


def thread_infos(processes: Sequence[ProcessThreads]) -> dict[str, Any]:
    """What every thread is doing, in Flink's shape; of several processes, each thread names its own."""
    return {
        "threadInfos": [
            {
                "threadName": thread.name if len(processes) == 1 else f"{thread.name} (process {each.process})",
                "stringifiedThreadInfo": thread.text,
            }
            for each in processes
            for thread in each.threads
        ]
    }


def environment() -> dict[str, Any]:
    """The interpreter, in Flink's shape, whose `jvm` is Python here. Variables may be secret: none is shown."""
    return {
        "jvm": {
            "version": f"{platform.python_implementation()} {platform.python_version()}",
            "arch": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
            "options": [sys.executable],
        },
        "classpath": list(sys.path),
    }
