"""Savepoints that somebody has asked for, from the request to the folder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack
from typing import Any

from penstock.checkpoint.metadata import CANONICAL
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.checkpoint.savepoints import RunCopies, write_savepoint
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.exceptions import CheckpointError
from penstock.graph.regions import Region


class Request:
    """Somebody wants a checkpoint or a savepoint. It is there when every region of the job has taken its part."""

    def __init__(self, waits_for: Iterable[Region]) -> None:
        self._waits_for = set(waits_for)
        self._lock = threading.Lock()

    def region_done(self, region: Region) -> bool:
        """True if this was the last region."""
        with self._lock:
            was_waiting = bool(self._waits_for)
            self._waits_for.discard(region)
            return was_waiting and not self._waits_for

    def fail(self, reason: str) -> None:
        raise NotImplementedError


class CheckpointRequest(Request):
    """The answer is the id of the checkpoint."""

    def __init__(self, waits_for: Iterable[Region]) -> None:
        super().__init__(waits_for)
        self.answer: Future[int] = Future()

    def fail(self, reason: str) -> None:
        _fail(self.answer, f"the checkpoint was not taken: {reason}")


class SavepointRequest(Request):
    """The answer is the path of the savepoint.

    `stops_job`: the job ends with it; `drains`: as if its input had ended, with the maximum watermark.
    """

    def __init__(
        self,
        waits_for: Iterable[Region],
        directory: str,
        format_type: str = CANONICAL,
        stops_job: bool = False,
        drains: bool = False,
    ) -> None:
        super().__init__(waits_for)
        self.directory = directory
        self.format_type = format_type
        self.stops_job = stops_job
        self.drains = drains
        self.answer: Future[str] = Future()

    def fail(self, reason: str) -> None:
        _fail(self.answer, f"the savepoint in {self.directory} was not written: {reason}")


def _fail(answer: Future[Any], reason: str) -> None:
    with contextlib.suppress(InvalidStateError):  # Another region has failed it already.
        answer.set_exception(CheckpointError(reason))


class SavepointWriter:
    """Copies complete checkpoints into savepoints while the job goes on."""

    def __init__(self, store: CompletedCheckpointStore, run: RunCopies) -> None:
        self._store = store
        self._run = run
        self._threads: list[threading.Thread] = []

    def write(self, request: SavepointRequest, checkpoint: FoundCheckpoint) -> None:
        held = ExitStack()
        held.enter_context(self._store.holding(checkpoint.metadata))  # Before the next checkpoint can come.

        def copy() -> None:
            try:
                with held:
                    path = write_savepoint(checkpoint, request.directory, request.format_type, self._run)
                request.answer.set_result(path)
            except BaseException as error:  # Told to whoever asked.
                request.fail(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=copy, name=f"savepoint-{checkpoint.metadata.checkpoint_id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self) -> None:
        """Until all are written: what they are copied from must not go before."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()
