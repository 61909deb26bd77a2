"""How user functions take part in checkpoints: CheckpointedFunction, ListCheckpointed and CheckpointListener."""

from __future__ import annotations

from typing import Any

from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    ListCheckpointed,
)
from penstock.datastream.state import ListStateDescriptor, OperatorStateStore
from penstock.runtime.runtime_context import StreamingRuntimeContext

LIST_CHECKPOINTED_STATE = "_list_checkpointed"


def takes_part_in_checkpoints(function: Any) -> bool:
    return isinstance(function, (CheckpointedFunction, ListCheckpointed, CheckpointListener))


class _InitializationContext(FunctionInitializationContext):
    def __init__(self, runtime_context: StreamingRuntimeContext) -> None:
        self._runtime_context = runtime_context

    def is_restored(self) -> bool:
        return self.get_restored_checkpoint_id() is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return self._runtime_context.operator_context.restored_checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._runtime_context.operator_context.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._runtime_context


class _SnapshotContext(FunctionSnapshotContext):
    def __init__(self, checkpoint_id: int, timestamp: int) -> None:
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp


class FunctionCheckpoints:
    """One function's part in checkpoints, from `start` (before the function opens) to `stop` (before it closes).

    After `stop`, snapshots contain what the function saved last, because a finished task is still part of checkpoints.
    """

    def __init__(self, function: Any, runtime_context: StreamingRuntimeContext) -> None:
        self._function = function
        self._runtime_context = runtime_context
        self._context = runtime_context.operator_context

    def start(self) -> None:
        if isinstance(self._function, CheckpointedFunction):
            self._function.initialize_state(_InitializationContext(self._runtime_context))
        if isinstance(self._function, ListCheckpointed) and self._context.restored_checkpoint_id is not None:
            self._function.restore_state(list(self._list_state().get()))
        self._context.participants.append(self)

    def stop(self) -> None:
        if self in self._context.participants:
            self._context.participants.remove(self)

    def snapshot_state(self, checkpoint_id: int) -> None:
        now_ms = self._context.clock()
        if isinstance(self._function, CheckpointedFunction):
            self._function.snapshot_state(_SnapshotContext(checkpoint_id, now_ms))
        elif isinstance(self._function, ListCheckpointed):
            self._list_state().update(list(self._function.snapshot_state(checkpoint_id, now_ms) or ()))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if isinstance(self._function, CheckpointListener):
            self._function.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        if isinstance(self._function, CheckpointListener):
            self._function.notify_checkpoint_aborted(checkpoint_id)

    def _list_state(self) -> Any:
        return self._context.operator_state.get_list_state(ListStateDescriptor(LIST_CHECKPOINTED_STATE))
