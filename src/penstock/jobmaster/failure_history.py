"""What failed in a job, and where: for the exception history, and as the error that users see."""

from __future__ import annotations

import linecache
import re
import traceback
from collections import OrderedDict, deque
from dataclasses import dataclass

from penstock.common.exceptions import MADE_AT, JobExecutionError, UserFunctionError
from penstock.runtime.failure import TaskFailure


@dataclass(frozen=True)
class FailureRecord:
    timestamp_ms: int
    exception_name: str
    stacktrace: str
    task_name: str | None = None
    subtask: int | None = None
    host: str | None = None
    message: str = ""
    """In one line."""


class FailureHistory:
    """The newest failures of a job."""

    def __init__(self, remembered: int = 16) -> None:
        self._records: deque[FailureRecord] = deque(maxlen=max(1, remembered))

    def add(self, failure: BaseException, now_ms: int) -> None:
        cause = failure.__cause__ or failure
        has_frames = getattr(failure, "user_traceback", None) is not None  # Its message has operator and record, too.
        self._records.appendleft(
            FailureRecord(
                now_ms,
                type(cause).__name__,
                str(failure) if has_frames else "".join(traceback.format_exception(failure)),
                getattr(failure, "operator", None),
                getattr(failure, "subtask", None),
                getattr(failure, "host", None),
                str(failure).partition("\n")[0],
            )
        )

    def newest_first(self) -> list[FailureRecord]:
        return list(self._records)


class FailureReports:
    """What is reported about attempts that fail: all of a failure when it is new, a short line when it comes again."""

    def __init__(self, remembered: int = 100) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._remembered = remembered

    def of(self, job_name: str, failure: BaseException, attempt: int, delay_ms: int) -> str:
        said = str(failure)
        first_line = said.partition("\n")[0]
        # At another record, or in another subtask, it is the same failure still.
        same = (
            f"{type(failure.__cause__ or failure).__name__}: {getattr(failure, 'user_traceback', None) or first_line}"
        )
        count = self._counts[same] = self._counts.pop(same, 0) + 1
        while len(self._counts) > self._remembered:
            self._counts.popitem(last=False)
        restarts = f"job '{job_name}': attempt {attempt} failed, restarting in {delay_ms} ms"
        if count > 1:
            return f"{restarts}: the same failure, {count} times so far: {first_line}"
        return (
            f"{restarts} (restart-strategy.type decides that; none ends the job at the first failure)\n{said.rstrip()}"
        )


def error_of(failure: TaskFailure, job_id: str, job_name: str, made_at: str | None = None) -> JobExecutionError:
    """A task's failure as the error that the user gets: the operator, the record, the user's own frames.

    :param made_at: The line of the program that made the operator, shown where there is no frame of the user's.
    """
    where = f"operator '{failure.operator}', subtask {failure.subtask + 1}/{failure.parallelism}"
    record = "" if failure.record is None else f", at record {failure.record}"
    if failure.timer is not None:
        record = f", in the timer of {failure.timer}"
    said = f"job '{job_name}' failed in {where}{record}: {failure.exception_type}: {failure.message}"
    frames = with_source_lines(failure.user_traceback)
    has_frames = "  File " in frames
    place = "" if made_at is None or has_frames else f"{MADE_AT}{made_at}\n"
    message = f"{said}\n\n{place}{frames}"
    error = (
        UserFunctionError(
            message,
            operator=failure.operator,
            subtask=failure.subtask,
            record=failure.record,
            user_traceback=frames,
            job_id=job_id,
            job_name=job_name,
        )
        if failure.is_user_error
        else JobExecutionError(message, job_id, job_name)
    )
    error.host = failure.host
    error.__cause__ = failure.exception()
    return error


_WITHOUT_SOURCE = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in .*\n(?!    )', re.MULTILINE)


def with_source_lines(frames: str) -> str:
    """Frames with the source lines that workers cannot know: of a notebook's cells, which are in no file."""
    return _WITHOUT_SOURCE.sub(_with_source_line, frames)


def _with_source_line(frame: re.Match[str]) -> str:
    line = linecache.getline(frame["file"], int(frame["line"])).strip()
    return f"{frame[0]}    {line}\n" if line else frame[0]
