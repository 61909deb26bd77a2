"""Logs and printed output of the process that runs jobs, as a list of files and as texts."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common import config_keys as keys
from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.rest.documents.jobs import printed
from penstock.rest.documents.process import LOG_NAME, log_tail
from penstock.rest.routes.errors import RestError, not_found

STDOUT_NAME = "penstock.out"
_MOST_CHARACTERS = 1_000_000
_MOST_BYTES = 10 * 1024 * 1024
_FILE_OF_JOB = re.compile(r"penstock-[0-9a-f]{32}\.log(\.[0-9]{1,4})?")


@dataclass(frozen=True)
class LogFile:
    """An entry of a list of logs."""

    name: str
    size: int
    mtime_ms: int


def listing(files: Iterable[LogFile]) -> dict[str, Any]:
    return {"logs": [{"name": each.name, "size": each.size, "mtime": each.mtime_ms} for each in files]}


def of_process(dispatcher: Dispatcher) -> dict[str, Any]:
    """What this process has logged, what its jobs printed, and the log files of jobs if they write any."""
    tail = log_tail()
    out = LogFile(STDOUT_NAME, len(stdout(dispatcher).encode()), int(time.time() * 1000))
    return listing(
        [
            LogFile(LOG_NAME, len(tail.text().encode()), tail.last_ms),
            out,
            *_files_in(dispatcher.config.get_optional(keys.LOG_DIR)),
        ]
    )


def file_of_process(dispatcher: Dispatcher, name: str) -> str:
    if name == LOG_NAME:
        return log_tail().text()
    if name == STDOUT_NAME:
        return stdout(dispatcher)
    # Only names that were found in the folder lead to a file: no path can be made up.
    folder = dispatcher.config.get_optional(keys.LOG_DIR)
    if folder is not None and name in (each.name for each in _files_in(folder)):
        return _end_of(Path(folder) / name)
    raise not_found("There is no log of that name; GET /jobmanager/logs lists those there are")


def _files_in(folder: str | None) -> list[LogFile]:
    """The log files of jobs."""
    if folder is None:
        return []
    try:
        found = [(path.name, path.lstat()) for path in Path(folder).iterdir() if _FILE_OF_JOB.fullmatch(path.name)]
    except OSError:  # No job has written one yet; or one is just being rotated.
        return []
    return [
        LogFile(name, entry.st_size, int(entry.st_mtime * 1000))
        for name, entry in sorted(found)
        if stat.S_ISREG(entry.st_mode)  # A link may lead anywhere.
    ]


def _end_of(file: Path) -> str:
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as content:
            content.seek(max(0, content.seek(0, os.SEEK_END) - _MOST_BYTES))
            return content.read(_MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise RestError(404, f"{file.name} cannot be read: {error.strerror}") from error


def stdout(dispatcher: Dispatcher) -> str:
    """What jobs have printed, job by job; the last job is the newest."""
    ended = [each.documents["/stdout"] for each in dispatcher.ended() if "/stdout" in each.documents]
    return printed_lines([*ended, *map(printed, dispatcher.running())])


def printed_lines(documents: Iterable[dict[str, Any]]) -> str:
    lines = [line["text"] for each in documents for line in each["lines"] if line["stream"] == "stdout"]
    return "".join(f"{line}\n" for line in lines)[-_MOST_CHARACTERS:]


def stdout_of(jobs: Iterable[RunningJob]) -> str:
    return printed_lines(map(printed, jobs))
