"""What `penstock run` shows on stderr while jobs run: one live line on a terminal, else a line now and then.

Results of the job are the only thing on stdout.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from penstock.cli.progress_text import closing_line, in_one_line
from penstock.common.clocks import wall_clock_ms
from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient
from penstock.common.redaction import redacted_text
from penstock.rest.client import RestClientError

_DRAWN_EVERY_S = 0.5
_CHECKED_EVERY_S = 0.1
_REPORTED_EVERY_S = 30.0
_REDRAWN_AFTER_S = 0.05
_CLEARED = "\r\x1b[K"


def _progress_of(client: JobClient) -> dict[str, Any]:
    """The progress of a job: of this process directly, of another one by a request."""
    from penstock.jobmaster.local_job_client import LocalJobClient

    if isinstance(client, LocalJobClient):
        from penstock.jobmaster.dispatcher import RunningJob
        from penstock.rest.documents.progress import progress

        return progress(RunningJob(client, Configuration()))
    reported: dict[str, Any] = client.progress()  # type: ignore[attr-defined]
    return reported


def say_what_was_restored(client: JobClient) -> None:
    """One line on stderr about what the job continues from; none if it starts afresh."""
    from penstock.jobmaster.local_job_client import LocalJobClient

    path: str | None
    if isinstance(client, LocalJobClient):
        restored = client.master.checkpoints.restored
        path = None if restored is None else restored.external_path
    else:
        try:
            path = client.restored_from()  # type: ignore[attr-defined]
        except RestClientError:  # The job runs, or has ended: its result is waited for, not this line.
            return
    if path is not None:
        print(f"Restored from {path}", file=sys.stderr, flush=True)


class LiveLine:
    """One line below everything that is written to a terminal. All streams of the terminal must write through it."""

    def __init__(self, stream: TextIO, width: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._width = width
        self._clock = clock
        self._lock = threading.RLock()
        self._text = ""
        self._is_visible = False
        self._is_in_a_line = False
        """True if part of a line has been written: nothing can be drawn below it."""
        self._drawn_s = 0.0

    def draw(self, text: str) -> None:
        with self._lock:
            self._text = text if len(text) <= self.room else f"{text[: self.room - 1]}…"
            self._draw()

    @property
    def room(self) -> int:
        """How many characters the line can have."""
        return self._width() - 1

    def draw_again(self) -> None:
        """Draw the line below what was written since it was hidden, if it was."""
        with self._lock:
            if self._text and not self._is_visible:
                self._draw()

    def clear(self) -> None:
        with self._lock:
            self._hide()
            self._text = ""

    def write(self, to: TextIO, text: str) -> int:
        """Write above the line, which is drawn again unless it was drawn a moment ago."""
        with self._lock:
            self._hide()
            written = to.write(text)
            if text:
                self._is_in_a_line = not text.endswith("\n")
            if self._text and self._clock() - self._drawn_s > _REDRAWN_AFTER_S:
                to.flush()
                self._draw()
            return written

    def _hide(self) -> None:
        if self._is_visible:
            self._stream.write(_CLEARED)
            self._stream.flush()
            self._is_visible = False

    def _draw(self) -> None:
        if not self._is_in_a_line:
            self._stream.write(f"{_CLEARED}{self._text}")
            self._stream.flush()
            self._is_visible, self._drawn_s = True, self._clock()


class AboveTheLine(io.TextIOBase):
    """A stream of a terminal that has a live line at its bottom."""

    def __init__(self, stream: TextIO, line: LiveLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        return self._line.write(self._stream, text)

    def flush(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        return self._stream.buffer


class RunScreen:
    """Shows the jobs of a program as long as it runs, and how each has ended."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._stream = sys.stderr
        self._line = LiveLine(sys.stderr, lambda: shutil.get_terminal_size().columns) if self._is_terminal else None
        self._clients: list[JobClient] = []
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="run-screen", daemon=True)
        self._restored = contextlib.ExitStack()

    def __enter__(self) -> RunScreen:
        if self._line is not None:
            self._restored.enter_context(contextlib.redirect_stderr(AboveTheLine(sys.stderr, self._line)))
            if sys.stdout.isatty():
                self._restored.enter_context(contextlib.redirect_stdout(AboveTheLine(sys.stdout, self._line)))
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._line is not None:
            self._line.clear()
        self._restored.close()
        for client in list(self._clients):
            self._close(client)

    def watch(self, client: JobClient) -> None:
        say_what_was_restored(client)
        with self._lock:
            self._clients.append(client)
        if self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        while self._is_time_to_look():
            with self._lock:
                clients = list(self._clients)
            for client in clients:
                if client.get_job_execution_result().done():
                    self._close(client)
            running = [each for each in clients if each in self._clients]
            if running:
                self._show(running[-1])

    def _is_time_to_look(self) -> bool:
        """Wait until it is; False if the program has ended. Meanwhile the line comes back below what is written."""
        if self._line is None:
            return not self._leaving.wait(_REPORTED_EVERY_S)
        for _ in range(round(_DRAWN_EVERY_S / _CHECKED_EVERY_S)):
            if self._leaving.wait(_CHECKED_EVERY_S):
                return False
            self._line.draw_again()
        return True

    def _show(self, client: JobClient) -> None:
        room = None if self._line is None else self._line.room
        try:
            text = in_one_line(_progress_of(client), wall_clock_ms(), room)
        except Exception as error:  # Watching must not disturb the job; a job manager may be away for a while.
            text = redacted_text(f"(not known: {error})".partition("\n")[0])
        if self._line is not None:
            self._line.draw(text)
        else:
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", file=self._stream, flush=True)

    def _close(self, client: JobClient) -> None:
        with self._lock:
            if client not in self._clients:
                return
            self._clients.remove(client)
        if self._line is not None:
            self._line.clear()
        with contextlib.suppress(Exception):  # A job manager that is gone cannot answer; the failure itself says more.
            print(closing_line(_progress_of(client)), file=sys.stderr, flush=True)
