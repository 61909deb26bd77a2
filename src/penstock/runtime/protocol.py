"""What the driver sends the subtasks of a region in each epoch, and what they answer."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from penstock.runtime.chunk import encode
from penstock.runtime.saved_state import FileChain, SavedState, StateHandle
from penstock.runtime.stack_sampler import Stack
from penstock.runtime.state.table import Extent
from penstock.runtime.stream_task import Committables, EpochOutcome


@dataclass(frozen=True)
class SubtaskOrder:
    """What a subtask is restored from if it must be, and what its next snapshot is to hold."""

    saved: tuple[SavedState, ...] = ()
    is_exact: bool = True
    """True if `saved` is the state of this very subtask, of the same job."""
    extent: Extent = Extent.ALL

    def may_hold_lists(self) -> bool:
        """True if operator state may be in it, of which union lists go to every subtask of the vertex."""
        return self.is_exact and any(
            not isinstance(each, FileChain) or any(state[1] == "operator" for state in each.states())
            for each in self.saved
        )


_PLAIN = struct.Struct("<cqqqqq")
_PLAIN_MARK = b"e"  # No pickle begins like that.


@dataclass(frozen=True)
class EpochCommand:
    """The driver's order for one epoch."""

    epoch: int
    now_ms: int
    """The driver's clock when the epoch began."""
    orders: dict[tuple[int, int], SubtaskOrder] = field(default_factory=dict)
    """By (vertex, subtask). A worker gets those of its own subtasks."""
    previous_epoch: int = 0
    """The last epoch of this run, whose state tasks continue with; 0 if there is none."""
    restorable_epoch: int = 0
    """The epoch whose state the orders hold; a task that is gone can be rebuilt if it is the previous one."""
    is_checkpoint: bool = False
    """True if the epoch ends with a checkpoint."""
    completed_checkpoint: int = 0
    """The last checkpoint that this run has completed; 0 for none."""
    aborted_checkpoints: tuple[int, ...] = ()
    """Checkpoints that failed since the last epoch."""
    is_last: bool = False
    """True if the tasks end with this epoch."""
    processes_nothing: bool = False
    """True if tasks get no rows and fire no timers.

    They are only notified of the last checkpoint, under the number of the last epoch, or save what they were restored
    with.
    """
    sampled_vertices: frozenset[int] = frozenset()
    """Those whose acknowledgements are to include what their threads were doing."""

    is_report: bool = False
    """True if all subtasks are to report how they are doing, also those that have nothing to do."""

    @property
    def is_plain(self) -> bool:
        """True if it is about the epoch's rows and nothing else: who gets none, and has no timer due, may sleep."""
        return not (
            self.is_report
            or self.orders
            or self.is_checkpoint
            or self.is_last
            or self.processes_nothing
            or self.aborted_checkpoints
            or self.sampled_vertices
        )

    def encode(self) -> bytes:
        """Most commands are plain ones, of which only the numbers are sent."""
        if self.is_plain:
            return _PLAIN.pack(
                _PLAIN_MARK,
                self.epoch,
                self.now_ms,
                self.previous_epoch,
                self.restorable_epoch,
                self.completed_checkpoint,
            )
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def decode(content: bytes) -> EpochCommand:
        if content.startswith(_PLAIN_MARK):
            _, epoch, now_ms, previous, restorable, completed = _PLAIN.unpack(content)
            return EpochCommand(epoch, now_ms, {}, previous, restorable, completed_checkpoint=completed)
        command: EpochCommand = pickle.loads(content)
        return command

    def by_worker(self, workers: int) -> list[EpochCommand]:
        """The command as each worker gets it: with no more orders than its subtasks need."""
        orders: list[dict[tuple[int, int], SubtaskOrder]] = [{} for _ in range(workers)]
        is_first = self.previous_epoch == 0
        if is_first or self.is_checkpoint:
            for at, order in self.orders.items():
                # A subtask that continues needs nothing of what it was restored from.
                orders[at[1] % workers][at] = order if is_first else SubtaskOrder(extent=order.extent)
        if is_first:
            shared = {vertex for (vertex, _), order in self.orders.items() if order.may_hold_lists()}
            united = {at: order for at, order in self.orders.items() if at[0] in shared}
            orders = [{**own, **united} for own in orders]
        return [replace(self, orders=own) for own in orders]


@dataclass(frozen=True)
class TaskAck:
    """A subtask's report that it is done with the epoch."""

    vertex: int
    subtask: int
    epoch: int
    handle: StateHandle | None
    """The new snapshot; None if the state did not change, or the epoch was no checkpoint."""
    outcome: EpochOutcome
    started_ms: int
    ended_ms: int
    committables: Committables = field(default_factory=dict)
    snapshot_failure: str | None = None
    """Why the snapshot could not be written."""
    snapshot_ms: int = 0
    """How long it took to write the snapshot."""
    host: str = ""
    process: int = 0
    stacks: dict[Stack, int] = field(default_factory=dict)
    """What its thread was seen doing, and how often; empty unless that was asked for."""

    def encode(self) -> bytes:
        """Without the names of classes and fields: there is one for each subtask that had something to do."""
        return encode((*_ACK_FIELDS(self), _OUTCOME_FIELDS(self.outcome)))

    @staticmethod
    def decode(content: bytes) -> TaskAck:
        *own, outcome = pickle.loads(content)
        vertex, subtask, epoch, handle, *others = own
        return TaskAck(vertex, subtask, epoch, handle, EpochOutcome(*outcome), *others)


_ACK_FIELDS = attrgetter(*(each.name for each in fields(TaskAck) if each.name != "outcome"))
_OUTCOME_FIELDS = attrgetter(*(each.name for each in fields(EpochOutcome)))
