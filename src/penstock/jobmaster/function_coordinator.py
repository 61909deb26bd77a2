"""The driver's side of a source function: a receiver and a spool for each subtask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common import config_keys as keys
from penstock.jobmaster.element_spool import ElementSpool
from penstock.jobmaster.function_receiver import FunctionReceiver, keeps_state
from penstock.jobmaster.source_setup import SourceSetup
from penstock.runtime.sources import SourceAssignment, SourceReport
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.operator import Saved, share_of

_PATIENCE_MS = 10_000


@dataclass(frozen=True)
class FunctionCut:
    """A place between two chunks, and the state the function had there."""

    number: int
    state: bytes | None = None
    """None if the function keeps none, or has just begun."""
    has_ended: bool = False
    """True if the end was planned."""


@dataclass(frozen=True)
class FunctionPosition:
    checkpoint_id: int
    cuts: tuple[FunctionCut, ...]
    """By subtask."""


class _Subtask:
    """The function of one subtask.

    A function that keeps state is asked for it when a checkpoint is planned. Everything it has emitted until then goes
    into that epoch, so its state fits the checkpoint and nothing of the spool need be part of it.
    """

    def __init__(self, function: Any, setup: SourceSetup, subtask: int) -> None:
        self._function = function
        self._setup = setup
        self._subtask = subtask
        self._keeps_state = keeps_state(function)
        most = setup.config.get(keys.SPOOL_MAX_RECORDS)
        self._max_records = min(most, setup.max_records or most)
        max_bytes = setup.config.get(keys.SPOOL_MAX_BYTES)
        self.spool = ElementSpool(setup.folder / str(subtask), self._max_records, max_bytes, setup.on_change)
        self._receiver: FunctionReceiver | None = None
        self._attempt = 0
        self.cut = FunctionCut(0)
        self.has_ended = False

    def start(self, cut: FunctionCut, restored_checkpoint_id: int | None) -> None:
        self.cut = cut
        self.has_ended = cut.has_ended
        if self.has_ended:
            return
        saved = None if cut.state is None else decode_state(cut.state)
        self._receiver = FunctionReceiver(
            self._function, self._setup, self._subtask, self.spool, saved, restored_checkpoint_id, self._attempt
        )
        self._receiver.start()

    def has_work(self) -> bool:
        receiver = self._receiver
        return not self.has_ended and receiver is not None and (self.spool.has_waiting or receiver.has_ended)

    @property
    def failure(self) -> Exception | None:
        return None if self._receiver is None else self._receiver.failure

    def plan(self, epoch: int, is_checkpoint: bool) -> SourceAssignment | None:
        if self.has_ended or self._receiver is None:
            return None
        if not self._setup.can_restart:
            self.spool.forget_before(self.spool.number)
        # Asked before taking: what comes in between is then not lost behind the end.
        is_over = self._receiver.has_ended
        if self._keeps_state and (is_checkpoint or is_over):
            chunks = self._take_with_state(self._receiver, epoch)
        else:
            chunks = self.spool.take(self._max_records)
            if not self._keeps_state:
                self.cut = FunctionCut(self.spool.number)
        if is_over and not self.spool.has_waiting:
            self._end()
        return SourceAssignment(chunks, self.has_ended) if chunks or self.has_ended else None

    def _take_with_state(self, receiver: FunctionReceiver, epoch: int) -> list[bytes]:
        with receiver.locked():
            if not receiver.is_open:
                return []  # It has emitted nothing, and its state is what it is to start with.
            chunks = self.spool.take(None)
            self.cut = FunctionCut(self.spool.number, encode_state(receiver.snapshot(epoch)))
            return chunks

    def end(self, epoch: int) -> SourceAssignment | None:
        """Read what there is, and be done with it."""
        assignment = self.plan(epoch, is_checkpoint=True)
        if self.has_ended:
            return assignment
        self._end()
        return SourceAssignment([] if assignment is None else assignment.payload, True)

    def _end(self) -> None:
        self.has_ended = True
        self.cut = FunctionCut(self.cut.number, self.cut.state, has_ended=True)

    def rewind(self, cut: FunctionCut, checkpoint_id: int) -> None:
        if self.failure is not None and self._receiver is not None:
            # The function runs again. If it goes on from the checkpoint, it emits again what came after that.
            self._receiver.join(_PATIENCE_MS)
            self._attempt += 1
            if self._keeps_state:
                self.spool.cut_off(cut.number)
            self.start(cut, checkpoint_id)
        self.cut, self.has_ended = cut, cut.has_ended
        self.spool.go_back(cut.number)

    def checkpoint_complete(self, cut: FunctionCut, checkpoint_id: int) -> None:
        self.spool.forget_before(cut.number)
        if self._receiver is not None and not self._receiver.failure:
            self._receiver.checkpoint_complete(checkpoint_id)

    def cancel(self) -> None:
        if self._receiver is not None:
            self._receiver.cancel()
        self.spool.close()

    def stop(self) -> None:
        if self._receiver is not None:
            self._receiver.join(self._setup.config.get_optional(keys.TASK_CANCELLATION_TIMEOUT) or _PATIENCE_MS)
        self.spool.release()


class FunctionSourceCoordinator:
    """One source function of a job."""

    def __init__(self, function: Any, setup: SourceSetup) -> None:
        self._setup = setup
        self._checkpoint_id = 0
        self._subtasks = [_Subtask(function, setup, number) for number in range(setup.parallelism)]
        self._restored = FunctionPosition(0, tuple(FunctionCut(0) for _ in self._subtasks))

    def start(self) -> None:
        restored_id = self._restored.checkpoint_id or None
        for subtask, cut in zip(self._subtasks, self._restored.cuts, strict=True):
            subtask.start(cut, restored_id)

    def restore(self, position: Any, is_exact: bool) -> None:
        """A new spool begins at 0; each function gets its state, or its share of all where the parallelism changed."""
        states: list[Saved | None] = [None if cut.state is None else decode_state(cut.state) for cut in position.cuts]
        if len(states) != len(self._subtasks):
            known = [state for state in states if state is not None]
            states = [
                share_of(known, number, len(self._subtasks)) if known else None for number in range(len(self._subtasks))
            ]
        ended = [is_exact and cut.has_ended for cut in position.cuts] if is_exact else [False] * len(states)
        cuts = [
            FunctionCut(0, None if state is None else encode_state(state), has_ended)
            for state, has_ended in zip(states, ended, strict=True)
        ]
        self._restored = FunctionPosition(position.checkpoint_id, tuple(cuts))

    def rewind(self, position: Any) -> None:
        for subtask, cut in zip(self._subtasks, position.cuts, strict=True):
            subtask.rewind(cut, position.checkpoint_id)

    def stop(self) -> None:
        for subtask in self._subtasks:
            subtask.cancel()
        for subtask in self._subtasks:
            subtask.stop()

    # --- epochs ----------------------------------------------------------------------------------------------------

    def has_work(self) -> bool:
        return any(subtask.has_work() for subtask in self._subtasks)

    def plan(self, epoch: int, is_checkpoint: bool) -> dict[int, SourceAssignment]:
        self._checkpoint_id = epoch
        planned = {number: each.plan(epoch, is_checkpoint) for number, each in enumerate(self._subtasks)}
        return {number: assignment for number, assignment in planned.items() if assignment is not None}

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        self._checkpoint_id = epoch
        planned = {number: each.end(epoch) for number, each in enumerate(self._subtasks)}
        return {number: assignment for number, assignment in planned.items() if assignment is not None}

    def suspend(self, epoch: int) -> dict[int, SourceAssignment]:
        """What was emitted cannot be emitted again: it is read before the job stops."""
        return self.plan(epoch, is_checkpoint=True)

    def resume(self) -> None:
        """It was not held back."""

    def epoch_complete(self, reports: Mapping[int, SourceReport], duration_ms: int) -> None:
        """The limits of the spool are what slows a function down."""

    @property
    def position(self) -> FunctionPosition:
        return FunctionPosition(self._checkpoint_id, tuple(subtask.cut for subtask in self._subtasks))

    def checkpoint_complete(self, position: Any) -> None:
        for subtask, cut in zip(self._subtasks, position.cuts, strict=True):
            subtask.checkpoint_complete(cut, position.checkpoint_id)

    @property
    def is_exhausted(self) -> bool:
        return all(subtask.has_ended for subtask in self._subtasks)

    def check(self) -> None:
        for subtask in self._subtasks:
            if subtask.failure is not None:
                raise subtask.failure
