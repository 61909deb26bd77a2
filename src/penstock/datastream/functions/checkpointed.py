"""Functions that take part in checkpoints with operator state of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.datastream.functions.runtime_context import KeyedStateStore
    from penstock.datastream.state import OperatorStateStore


class FunctionSnapshotContext(ABC):
    """What a function can ask about the checkpoint being taken.

    `CheckpointedFunction` has an example.
    """

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Number of the checkpoint, greater than those of earlier ones."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was started, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Gives access to the function's state at start and at recovery.

    `CheckpointedFunction` has an example.
    """

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
    """A function that keeps operator state, or wants to act when a checkpoint is taken.

    >>> from penstock.datastream import MapFunction
    >>> from penstock.datastream.state import ListStateDescriptor
    >>> class Numbered(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.saved = context.get_operator_state_store().get_list_state(ListStateDescriptor("count"))
    ...         self.count = sum(self.saved.get())  # After rescaling, a subtask may get several parts, or none.
    ...     def snapshot_state(self, context):
    ...         self.saved.update([self.count])
    ...     def map(self, value):
    ...         self.count += 1
    ...         return self.count, value
    >>> list(env.from_collection(["a", "b"]).map(Numbered()).execute_and_collect())
    [(1, 'a'), (2, 'b')]
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called for every checkpoint: bring the state up to date."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called before `open`, at the first start and after every recovery: get the state."""


class ListCheckpointed(ABC):
    """A simpler form: the state is a list, redistributed when the parallelism changes.

    >>> from penstock.datastream import MapFunction
    >>> class Numbered(MapFunction, ListCheckpointed):
    ...     count = 0
    ...     def snapshot_state(self, checkpoint_id, timestamp):
    ...         return [self.count]
    ...     def restore_state(self, state):
    ...         self.count = sum(state)
    ...     def map(self, value):
    ...         self.count += 1
    ...         return self.count, value
    >>> list(env.from_collection(["a", "b"]).map(Numbered()).execute_and_collect())
    [(1, 'a'), (2, 'b')]
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """The state as a list of parts that can be redistributed one by one."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Called after a recovery with this subtask's share, which may be empty."""


class CheckpointListener(ABC):
    """A function that is notified when a checkpoint is complete everywhere.

    >>> from penstock.datastream import MapFunction
    >>> class Forward(MapFunction, CheckpointListener):
    ...     def map(self, value):
    ...         return value
    ...     def notify_checkpoint_complete(self, checkpoint_id):
    ...         print("everything before checkpoint", checkpoint_id, "is safe")
    >>> list(env.from_collection(["a"]).map(Forward()).execute_and_collect())
    everything before checkpoint 1 is safe
    ['a']
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete; calls may be missing, so treat it as covering all earlier ones."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed or was given up."""
