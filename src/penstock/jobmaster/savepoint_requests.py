"""Savepoints that somebody has asked for, from the request to the folder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack
from contextvars import copy_context
from typing import Any

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.metadata import CANONICAL, CheckpointMetadata
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.checkpoint.savepoints import RunCopies, write_savepoint
from penstock.common.exceptions import CheckpointError
from penstock.graph.regions import Region


class Request:
    """Somebody wants a checkpoint or a savepoint. It is complete when every region of the job has done its part."""

    def __init__(self, waits_for: Iterable[Region]) -> None:
        self._waits_for = set(waits_for)
        self._lock = threading.Lock()
        self.answer: Future[Any] = Future()

    def region_done(self, region: Region) -> bool:
        """True if this was the last region."""
        with self._lock:
            was_waiting = bool(self._waits_for)
            self._waits_for.discard(region)
            return was_waiting and not self._waits_for

    def fail(self, reason: str) -> None:
        raise NotImplementedError

    @property
    def is_answered(self) -> bool:
        """True if nothing is left to do for it."""
        return self.answer.done()


class CheckpointRequest(Request):
    """The answer is the id of the checkpoint."""

    answer: Future[int]

    def fail(self, reason: str) -> None:
        _fail(self.answer, f"the checkpoint was not taken: {reason}")


class SavepointRequest(Request):
    """The answer is the path of the savepoint.

    `stops_job`: the job ends with it, and the answer comes when it has; `drains`: as if its input had ended, with the
    maximum watermark.
    """

    answer: Future[str]

    def __init__(
        self,
        waits_for: Iterable[Region],
        directory: str,
        format_type: str = CANONICAL,
        stops_job: bool = False,
        drains: bool = False,
    ) -> None:
        regions = set(waits_for)
        super().__init__(regions)
        self.directory = directory
        self.format_type = format_type
        self.stops_job = stops_job
        self.drains = drains
        self._still_running = regions
        self.written: Future[str] = Future()
        """Done when the savepoint is written, or never will be."""

    def succeed(self, path: str) -> None:
        """The savepoint is written."""
        _set(self.written, path)
        with self._lock:
            is_over = not self.stops_job or not self._still_running
        if is_over and not self.answer.done():
            _set(self.answer, path)

    def region_ended(self, region: Region) -> None:
        """A region of the job that is to stop has come to its end."""
        with self._lock:
            self._still_running.discard(region)
            is_over = not self._still_running
        if is_over and self.is_written:
            _set(self.answer, self.written.result())

    @property
    def is_written(self) -> bool:
        return self.written.done() and self.written.exception() is None

    def fail(self, reason: str) -> None:
        if self.is_written:
            _fail(self.answer, f"the savepoint is in {self.written.result()}, but the job did not stop: {reason}")
            return
        message = f"the savepoint in {self.directory} was not written: {reason}"
        _fail(self.answer, message)
        _fail(self.written, message)


def _set(answer: Future[Any], value: Any) -> None:
    with contextlib.suppress(InvalidStateError):  # It was given up meanwhile.
        answer.set_result(value)


def _fail(answer: Future[Any], reason: str) -> None:
    with contextlib.suppress(InvalidStateError):  # Another region has failed it already.
        answer.set_exception(CheckpointError(reason))


class SavepointWriter:
    """Copies complete checkpoints into savepoints while the job runs."""

    def __init__(self, folder: Folder, run: RunCopies) -> None:
        self._folder = folder
        self._run = run
        self._lock = threading.Lock()
        """Regions complete requests in threads of their own."""
        self._threads: list[threading.Thread] = []
        self._unanswered: set[SavepointRequest] = set()
        self.has_written = False
        """True if there is a savepoint of the job."""

    def write(self, request: SavepointRequest, metadata: CheckpointMetadata, held: ExitStack) -> None:
        """`held`: keeps the checkpoint's files until it is closed."""
        checkpoint = FoundCheckpoint(metadata, self._folder, self._folder.uri)

        def copy() -> None:
            try:
                with held:
                    path = write_savepoint(checkpoint, request.directory, request.format_type, self._run)
                self.has_written = True
                request.succeed(path)
            except BaseException as error:  # Reported to the caller.
                request.fail(f"{type(error).__name__}: {error}")
            finally:
                with self._lock:
                    self._unanswered.discard(request)

        # In the context of the job: what is copied is made of the classes of its script.
        run = copy_context().run
        thread = threading.Thread(target=run, args=(copy,), name=f"savepoint-{metadata.checkpoint_id}", daemon=True)
        with self._lock:
            self._threads = [*(each for each in self._threads if each.is_alive()), thread]
            self._unanswered.add(request)
            thread.start()

    def wait(self) -> None:
        """Wait until all are written: the files that they are copied from must stay until then."""
        with self._lock:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()

    def give_up(self) -> None:
        """Nobody waits for those that are not written yet."""
        with self._lock:
            unanswered = list(self._unanswered)
        for request in unanswered:
            request.fail("the job was cancelled before, and its storage does not answer")
