"""The log of one job: what its functions log wherever they run, and what Penstock logs on its behalf.

The newest lines stay in memory; with `env.log.dir` all go to a file that is rotated. Records of functions reach the
program's own logging as if they had been logged there.
"""

from __future__ import annotations

import logging
import logging.handlers
import queue
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.redaction import RedactingFormatter
from penstock.jobmaster.sinks.job_output import JobOutput
from penstock.runtime.task_output import LoggedRecord, PrintedLine, TaskPlace, Written, current_task, read_written

_log = logging.getLogger(__name__)

_MOST_LINES = 5_000
_MOST_CHARACTERS = 1_000_000
_LONGEST_RECORD = 8_000
_MOST_WAITING = 1_000
_LOOKED_AT_EVERY_S = 1.0
_FILE_BYTES = 10 * 1024 * 1024
LINE_FORMAT = "%(asctime)s %(levelname)-5s [%(where)s] %(name)s - %(message)s"


class _Line(NamedTuple):
    number: int
    text: str
    place: TaskPlace | None


_current: ContextVar[JobLog | None] = ContextVar("penstock_job_log", default=None)


def current_job_log() -> JobLog | None:
    """Of the job that this thread works for."""
    return _current.get()


class _LogFile(logging.handlers.RotatingFileHandler):
    """A file whose failures are raised, instead of being printed with a stack for each record."""

    def handleError(self, record: logging.LogRecord) -> None:
        raise


class JobLog:
    """Written by the job's threads and by those that hear its workers; read by any."""

    def __init__(self, job_id: str, job_name: str, config: Configuration, output: JobOutput) -> None:
        self.job_id = job_id
        self.job_name = job_name
        self._output = output
        self._formatter = RedactingFormatter(LINE_FORMAT)
        self._lock = threading.Lock()
        self._lines: deque[_Line] = deque(maxlen=_MOST_LINES)
        self._characters = 0
        self._count = 0
        self._file = self._open_file(config)
        self._waiting: queue.Queue[list[Written] | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def _open_file(self, config: Configuration) -> _LogFile | None:
        folder = config.get_optional(keys.LOG_DIR)
        if folder is None:
            return None
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            handler = _LogFile(
                Path(folder) / f"penstock-{self.job_id}.log",
                maxBytes=_FILE_BYTES,
                backupCount=config.get(keys.LOG_MAX_FILES),
                encoding="utf-8",
                delay=True,
            )
        except OSError as error:
            _log.warning("job '%s' writes no log file: %s: %s", self.job_name, keys.LOG_DIR.key, error)
            return None
        handler.setFormatter(self._formatter)
        return handler

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, record: logging.LogRecord, place: TaskPlace | None = None) -> None:
        """Keep a record."""
        record.where = str(place) if place is not None else f"job '{self.job_name}'"
        try:
            text = self._formatter.format(record)[:_LONGEST_RECORD]
        except Exception as error:  # Arguments that do not fit the message. As in Python, the caller does not fail.
            message = f"{record.msg!r} with {record.args!r} cannot be formatted: {error}"
            record = logging.makeLogRecord({**record.__dict__, "msg": message, "args": ()})
            text = self._formatter.format(record)[:_LONGEST_RECORD]
        with self._lock:
            if len(self._lines) == _MOST_LINES:
                self._characters -= len(self._lines[0].text)
            self._lines.append(_Line(self._count, text, place))
            self._count += 1
            self._characters += len(text)
            while self._characters > _MOST_CHARACTERS:
                self._characters -= len(self._lines.popleft().text)
        file = self._file
        if file is not None:
            try:
                file.handle(record)
            except OSError as error:
                self._give_up(file, error)

    def _give_up(self, file: _LogFile, error: OSError) -> None:
        """The disk is full, say. The job continues without the file, and that is reported once."""
        with self._lock:
            is_first, self._file = self._file is not None, None
        if is_first:
            with suppress(OSError):  # Of what is still in its buffer.
                file.close()
            _log.warning("job '%s' writes no more to its log file %s: %s", self.job_name, file.baseFilename, error)

    def note(self, message: str, level: int = logging.INFO) -> None:
        """Keep what happened to the job itself, whatever levels loggers have."""
        self.write(logging.LogRecord(_log.name, level, __file__, 0, message, None, None))

    def take(self, content: bytes, is_wanted: Callable[[], bool]) -> None:
        """Take what a worker has sent. A thread of its own shows it: those that hear workers wait for no terminal.

        A worker that writes more than is shown waits, as long as `is_wanted`.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._show_all, name=f"log-{self.job_id}", daemon=True)
                self._thread.start()
        written = read_written(content)
        while is_wanted():
            try:
                self._waiting.put(written, timeout=_LOOKED_AT_EVERY_S)
                return
            except queue.Full:
                continue

    def _show_all(self) -> None:
        while (written := self._waiting.get()) is not None:
            for each in written:
                self._show(each)

    def _show(self, written: Written) -> None:
        try:
            if isinstance(written, PrintedLine):
                self._output.show([(written.is_error, written.text)])
            else:
                self._log_here(written)
        except Exception as error:  # A terminal that is gone; nobody else would take the rest.
            _log.debug("output of job %s cannot be shown: %s", self.job_id, error)

    def _log_here(self, written: LoggedRecord) -> None:
        record = logging.makeLogRecord(written.fields)
        self.mark(record, written.place)
        self.write(record, written.place)
        logger = logging.getLogger(record.name)
        if logger.hasHandlers():
            logger.handle(record)
        elif record.levelno >= logging.WARNING:  # As Python does where nothing is set up, but with where and when.
            self._output.show([(True, self._formatter.format(record))])

    def mark(self, record: logging.LogRecord, place: TaskPlace | None) -> None:
        """Let formats of the user's say where it comes from."""
        record.job_id, record.job_name = self.job_id, self.job_name
        record.where = f"job '{self.job_name}'"
        if place is not None:
            record.where = record.threadName = str(place)
            record.task_name, record.subtask = place.task, place.subtask

    @contextmanager
    def worked_for(self) -> Iterator[None]:
        """Within, what this thread and those that it starts log belongs to the job."""
        _install_record_factory()
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def close(self) -> None:
        """Nothing more will come: show what waits."""
        thread = self._thread
        if thread is not None:
            self._waiting.put(None)
            thread.join()
        file = self._file
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._give_up(file, error)

    # --- reading -----------------------------------------------------------------------------------------------------

    def lines(self, after: int = -1) -> list[tuple[int, str]]:
        """The newest records, each with its number; only those after number `after`."""
        with self._lock:
            return [(line.number, line.text) for line in self._lines if line.number > after]

    def texts_of(self, tasks: Collection[tuple[str, int]]) -> list[str]:
        """What was logged by these tasks, each given by its name and subtask."""
        with self._lock:
            lines = list(self._lines)
        return [each.text for each in lines if each.place and (each.place.task, each.place.subtask) in tasks]


_factory_lock = threading.Lock()
_has_factory = False


def _install_record_factory() -> None:
    """What functions log in this process, with or without Spark, is kept in their job's log, too.

    A handler of the root logger could do that, but where there is one, `logging.basicConfig` does nothing.
    """
    global _has_factory
    with _factory_lock:
        if _has_factory:
            return
        _has_factory = True
        make = logging.getLogRecordFactory()

        def make_and_keep(*args: object, **fields: object) -> logging.LogRecord:
            record = make(*args, **fields)
            job = current_job_log()
            if job is not None:
                place = current_task()
                job.mark(record, place)
                if not record.name.startswith("penstock"):  # Ours come by our own handler.
                    job.write(record, place)
            return record

        logging.setLogRecordFactory(make_and_keep)
