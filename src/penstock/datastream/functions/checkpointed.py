"""Functions that take part in checkpoints with operator state of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.datastream.functions.runtime_context import KeyedStateStore
    from penstock.datastream.state import OperatorStateStore


class FunctionSnapshotContext(ABC):
    """What a function can ask about the checkpoint being taken."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Number of the checkpoint, greater than those of earlier ones."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was started, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Gives access to the function's state at start and at recovery."""

    @abstractmethod
    def is_restored(self) -> bool:
        """True if state comes from a checkpoint or savepoint, False on a fresh start."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Number of the checkpoint restored from; None on a fresh start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """List, union list and broadcast state of this operator."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Keyed state; only on a keyed stream."""


class CheckpointedFunction(ABC):
    """A function that keeps operator state, or wants to act when a checkpoint is taken."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called for every checkpoint: bring the state up to date."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called before `open`, at the first start and after every recovery: get the state."""


class ListCheckpointed(ABC):
    """A simpler form: the state is a list, redistributed when the parallelism changes."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """The state as a list of parts that can be redistributed one by one."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Called after a recovery with this subtask's share, which may be empty."""


class CheckpointListener(ABC):
    """A function that is notified when a checkpoint is complete everywhere."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete; calls may be missing, so treat it as covering all earlier ones."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed or was given up."""
