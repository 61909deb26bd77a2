"""Savepoints that somebody has asked for, from the request to the folder."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field

from penstock.checkpoint.metadata import CANONICAL
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.checkpoint.savepoints import RunCopies, write_savepoint
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.exceptions import CheckpointError


@dataclass(frozen=True)
class CheckpointRequest:
    """Somebody wants a checkpoint now; the answer is its id."""

    answer: Future[int] = field(default_factory=Future)


@dataclass(frozen=True)
class SavepointRequest:
    """Somebody wants a savepoint; the answer is its path."""

    directory: str
    format_type: str = CANONICAL
    stops_job: bool = False
    drains: bool = False
    """With `stops_job`: the job ends as if its input had ended, with the maximum watermark."""
    answer: Future[str] = field(default_factory=Future)


Request = CheckpointRequest | SavepointRequest


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
                failure = CheckpointError(f"the savepoint in {request.directory} could not be written: {error}")
                failure.__cause__ = error
                request.answer.set_exception(failure)

        thread = threading.Thread(target=copy, name=f"savepoint-{checkpoint.metadata.checkpoint_id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self) -> None:
        """Until all are written: what they are copied from must not go before."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()
