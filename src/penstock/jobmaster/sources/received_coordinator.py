"""The driver's side of sources that hand their elements over by themselves: a receiver and a spool for each subtask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from penstock.common import config_keys as keys
from penstock.graph.descriptions import SocketSourceDescription
from penstock.jobmaster.region.epoch_pace import FIRST_RECORDS, EpochPace
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.jobmaster.sources.function_coordinator import FunctionCut, FunctionPosition
from penstock.jobmaster.sources.function_receiver import FunctionReceiver, keeps_state
from penstock.jobmaster.sources.socket_receiver import SocketReceiver
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import encode, encode_in_driver, read_chunk
from penstock.runtime.sources import SourceAssignment, SourceReport
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.operator import Saved, share_of

_PATIENCE_MS = 10_000


class Receiver(Protocol):
    """A thread that spools the records it receives, from `start` to `join`."""

    is_open: bool
    """False as long as it has taken nothing and its state is what it is to start with."""
    has_ended: bool
    """True once nothing more will come."""

    @property
    def failure(self) -> Exception | None: ...

    def start(self) -> None: ...

    def locked(self) -> AbstractContextManager[Any]:
        """While held, nothing is taken from outside, and the state fits what was taken."""

    def catch_up(self) -> None:
        """Take what has come from outside by now, if that takes no waiting. Called by the job's thread."""

    def hold(self) -> None:
        """Take nothing more from outside, until `let_go`."""

    def let_go(self) -> None:
        """Continue; nothing happens if it was not held."""

    def snapshot(self, checkpoint_id: int) -> Saved:
        """The state that belongs to what was taken; called while locked."""

    def checkpoint_complete(self, checkpoint_id: int) -> None: ...

    def cancel(self) -> None:
        """Have it end, even if it is held."""

    def join(self, timeout_ms: int) -> None: ...


Encode = Callable[[Any], bytes]
MakeReceiver = Callable[[int, ElementSpool, Saved | None, int | None, int], Receiver]
"""From subtask, spool, restored state and the checkpoint it belongs to, and number of the attempt."""


class _Subtask:
    """What one subtask receives.

    A receiver that keeps state is asked for it when a checkpoint is planned. Everything it has taken until then goes
    into that epoch, so its state fits the checkpoint and nothing of the spool need be part of it.
    """

    def __init__(
        self, make_receiver: MakeReceiver, keeps_state: bool, setup: SourceSetup, subtask: int, encode: Encode
    ) -> None:
        self._make_receiver = make_receiver
        self._keeps_state = keeps_state
        self._setup = setup
        self._subtask = subtask
        most = setup.config.get(keys.SPOOL_MAX_RECORDS)
        max_bytes = setup.config.get(keys.SPOOL_MAX_BYTES)
        self.spool = ElementSpool(setup.folder / str(subtask), most, max_bytes, setup.on_change, encode)
        self._receiver: Receiver | None = None
        self._attempt = 0
        self.cut = FunctionCut(0)
        self.has_ended = False

    def start(self, cut: FunctionCut, restored_checkpoint_id: int | None) -> None:
        self.cut = cut
        self.has_ended = cut.has_ended
        if cut.has_ended or cut.is_over:
            return
        saved = None if cut.state is None else decode_state(cut.state)
        self._receiver = self._make_receiver(self._subtask, self.spool, saved, restored_checkpoint_id, self._attempt)
        self._receiver.start()

    def has_work(self) -> bool:
        if self.has_ended:
            return False
        receiver = self._receiver
        return self.cut.is_over or (receiver is not None and (self.spool.has_waiting or receiver.has_ended))

    @property
    def failure(self) -> Exception | None:
        return None if self._receiver is None else self._receiver.failure

    def plan(self, epoch: int, is_checkpoint: bool, max_records: int | None) -> SourceAssignment | None:
        """`max_records`: about this many, where the state allows it; None: all that was taken."""
        if self.has_ended:
            return None
        receiver = self._receiver
        if receiver is None:
            self._end()
            return SourceAssignment([], True)
        if not self._setup.can_restart:
            self.spool.forget_before(self.spool.number)
        # Asked before taking, so that records that arrive in between are not lost after the end.
        is_over = receiver.has_ended
        if self._keeps_state and (is_checkpoint or is_over):
            chunks = self._take_with_state(receiver, epoch)
        else:
            receiver.catch_up()
            chunks = self.spool.take(max_records)
            if not self._keeps_state:
                self.cut = FunctionCut(self.spool.number)
        if is_over and not self.spool.has_waiting:
            self._end()
        return SourceAssignment(chunks, self.has_ended) if chunks or self.has_ended else None

    def _take_with_state(self, receiver: Receiver, epoch: int) -> list[bytes]:
        with receiver.locked():
            if not receiver.is_open:
                return []  # It has emitted nothing, and its state is what it is to start with.
            chunks = self.spool.take(None)
            self.cut = FunctionCut(self.spool.number, encode_state(receiver.snapshot(epoch)))
            return chunks

    def suspend(self, epoch: int) -> SourceAssignment | None:
        """Read all that was taken from outside, and take nothing more."""
        if self._receiver is not None:
            self._receiver.hold()
        return self.plan(epoch, is_checkpoint=True, max_records=None)

    def end(self, epoch: int) -> SourceAssignment | None:
        """The same, and end the source."""
        assignment = self.suspend(epoch)
        if self.has_ended:
            return assignment
        self._end()
        return SourceAssignment([] if assignment is None else assignment.payload, True)

    def _end(self) -> None:
        self.has_ended = True
        self.cut = FunctionCut(self.cut.number, self.cut.state, has_ended=True)

    def resume(self) -> None:
        if self._receiver is not None:
            self._receiver.let_go()

    def rewind(self, cut: FunctionCut, checkpoint_id: int) -> None:
        self.resume()
        if self.failure is not None and self._receiver is not None:
            # It runs again. If it continues from the checkpoint, it emits again what came after that.
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


class ReceivedSourceCoordinator:
    """One source function or socket of a job.

    It may be ahead of the job by about what an epoch takes, and waits then: so neither the spool nor the epoch of a
    checkpoint, which takes all that a function has emitted, grows beyond what the job can process in time.
    """

    def __init__(
        self,
        make_receiver: MakeReceiver,
        setup: SourceSetup,
        keeps_state: bool,
        payload_of: Callable[[list[bytes]], Any] = lambda chunks: chunks,
        encode_elements: Encode = encode_in_driver,
    ) -> None:
        self._payload_of = payload_of
        self._checkpoint_id = 0
        numbers = range(setup.parallelism)
        self._subtasks = [_Subtask(make_receiver, keeps_state, setup, number, encode_elements) for number in numbers]
        self._restored = FunctionPosition(0, tuple(FunctionCut(0) for _ in self._subtasks))
        self._pace = _pace_of(setup)
        self._limit()

    def start(self) -> None:
        restored_id = self._restored.checkpoint_id or None
        for subtask, cut in zip(self._subtasks, self._restored.cuts, strict=True):
            subtask.start(cut, restored_id)

    def restore(self, position: Any, is_exact: bool) -> None:
        """A new spool begins at 0; each receiver gets its state, or its share of all where the parallelism changed."""
        if isinstance(position, tuple):  # Earlier versions kept of a socket how many lines were read, and whether all.
            position = FunctionPosition(0, (FunctionCut(0, has_ended=position[1]),))
        states: list[Saved | None] = [None if cut.state is None else decode_state(cut.state) for cut in position.cuts]
        over = [cut.has_ended or cut.is_over for cut in position.cuts]
        if len(states) != len(self._subtasks):
            known = [state for state in states if state is not None]
            numbers = range(len(self._subtasks))
            states = [share_of(known, number, len(numbers)) if known else None for number in numbers]
            over = [all(over)] * len(numbers)
        ended = [cut.has_ended for cut in position.cuts] if is_exact else [False] * len(states)
        cuts = [
            FunctionCut(0, None if state is None else encode_state(state), has_ended, is_over and not has_ended)
            for state, has_ended, is_over in zip(states, ended, over, strict=True)
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
        return self._planned(epoch, lambda subtask: subtask.plan(epoch, is_checkpoint, self._pace.records))

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        return self._planned(epoch, lambda subtask: subtask.end(epoch))

    def suspend(self, epoch: int) -> dict[int, SourceAssignment]:
        """What was taken cannot be had again: it is read before the job stops."""
        return self._planned(epoch, lambda subtask: subtask.suspend(epoch))

    def _planned(self, epoch: int, plan: Callable[[_Subtask], SourceAssignment | None]) -> dict[int, SourceAssignment]:
        self._checkpoint_id = epoch
        planned = {number: plan(subtask) for number, subtask in enumerate(self._subtasks)}
        return {
            number: SourceAssignment(self._payload_of(assignment.payload), assignment.is_last, is_encoded=True)
            for number, assignment in planned.items()
            if assignment is not None
        }

    def resume(self) -> None:
        for subtask in self._subtasks:
            subtask.resume()

    def epoch_complete(self, reports: Mapping[int, SourceReport], duration_ms: int) -> None:
        spools = [subtask.spool for subtask in self._subtasks]
        had_more = [spool.was_full or spool.has_waiting for spool in spools]
        self._pace.epoch_completed(duration_ms, max(spool.records_taken for spool in spools), any(had_more))
        self._limit()

    def _limit(self) -> None:
        for subtask in self._subtasks:
            subtask.spool.limit(self._pace.records)

    @property
    def position(self) -> FunctionPosition:
        return FunctionPosition(self._checkpoint_id, tuple(subtask.cut for subtask in self._subtasks))

    def checkpoint_complete(self, position: Any) -> None:
        for subtask, cut in zip(self._subtasks, position.cuts, strict=True):
            subtask.checkpoint_complete(cut, position.checkpoint_id)

    @property
    def is_exhausted(self) -> bool:
        return all(subtask.has_ended for subtask in self._subtasks)

    def share_read(self) -> float | None:
        return None

    def check(self) -> None:
        for subtask in self._subtasks:
            if subtask.failure is not None:
                raise subtask.failure


def function_coordinator(function: Any, setup: SourceSetup) -> ReceivedSourceCoordinator:
    def receiver(
        subtask: int, spool: ElementSpool, saved: Saved | None, checkpoint_id: int | None, attempt: int
    ) -> Receiver:
        return FunctionReceiver(function, setup, subtask, spool, saved, checkpoint_id, attempt)

    return ReceivedSourceCoordinator(receiver, setup, keeps_state(function))


def socket_coordinator(description: SocketSourceDescription, setup: SourceSetup) -> ReceivedSourceCoordinator:
    def receiver(
        subtask: int, spool: ElementSpool, saved: Saved | None, checkpoint_id: int | None, attempt: int
    ) -> Receiver:
        return SocketReceiver(description, spool, setup.on_change)

    return ReceivedSourceCoordinator(receiver, setup, keeps_state=False, payload_of=_lines_of, encode_elements=encode)


def _lines_of(chunks: list[bytes]) -> list[str]:
    events = [event for chunk in chunks for event in read_chunk(chunk)]
    return [line for event in events if isinstance(event, Batch) for line in event.values]


def _pace_of(setup: SourceSetup) -> EpochPace:
    most = setup.config.get(keys.SPOOL_MAX_RECORDS)
    most = min(most, setup.max_records or most)
    return EpochPace(setup.config.get(keys.EPOCH_TARGET_DURATION), most, min(FIRST_RECORDS, most))
