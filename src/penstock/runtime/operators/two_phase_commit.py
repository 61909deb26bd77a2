"""TwoPhaseCommitSinkFunction in a subtask: one transaction for each checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import TwoPhaseCommitSinkFunction
from penstock.datastream.state import ListStateDescriptor
from penstock.graph.descriptions import TwoPhaseCommitDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.operators.sinks import FunctionSinkContext
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.user_function import UserFunction

TRANSACTIONS_STATE = "state"
"""The state has this name in Flink, too."""


@dataclass(frozen=True)
class SavedTransactions:
    """The transactions of one subtask at a checkpoint: the pre-committed ones, and the one that was begun last."""

    pending: tuple[Any, ...]
    open: tuple[Any, ...]


class TwoPhaseCommitOperator(StreamOperator):
    """Writes into a transaction, pre-commits it when a checkpoint is taken, and commits it when that is complete.

    A restart commits pre-committed transactions, because their checkpoint is complete. It aborts open ones, because
    their elements are processed again.
    """

    def __init__(self, description: TwoPhaseCommitDescription) -> None:
        self.user_function = UserFunction(description.function, "invoke")
        self._current: list[Any] = []
        """The open transaction; empty before `open`, after `close`, and after the last checkpoint of finished input."""
        self._pending: dict[int, list[Any]] = {}
        """Pre-committed transactions by checkpoint."""
        self._is_finished = False

    @property
    def function(self) -> TwoPhaseCommitSinkFunction[Any]:
        function: TwoPhaseCommitSinkFunction[Any] = self.user_function.function
        return function

    def open(self) -> None:
        self._sink_context = FunctionSinkContext(self)
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=False))
        self._recover()
        self._current = [self.function.begin_transaction()]

    def _recover(self) -> None:
        saved = list(self._state().get())
        for transaction in (each for subtask in saved for each in subtask.pending):
            self.function.recover_and_commit(transaction)
        for transaction in (each for subtask in saved for each in subtask.open):
            self.function.recover_and_abort(transaction)
        self._state().clear()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        invoke = self.function.invoke
        context = self._sink_context
        [transaction] = self._current
        for at, value in enumerate(batch.values):
            context.element_timestamp = None if batch.timestamps is None else batch.timestamps[at]
            invoke(transaction, value, context)

    def process_watermark(self, watermark: int) -> None:
        super().process_watermark(watermark)
        self.function.write_watermark(watermark)

    def finish(self) -> None:
        self.function.finish()
        self._is_finished = True

    def close(self) -> None:
        """Abort the open transaction, which nothing will commit. A restart commits the pre-committed ones."""
        open_transactions, self._current = self._current, []
        try:
            for transaction in open_transactions:
                self.function.abort(transaction)
        finally:
            self.user_function.close()

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> None:
        super().snapshot_state(checkpoint_id)
        for transaction in self._current:
            self.function.pre_commit(transaction)
            self._pending.setdefault(checkpoint_id, []).append(transaction)
        self._current = [] if self._is_finished else [self.function.begin_transaction()]
        pending = tuple(each for transactions in self._pending.values() for each in transactions)
        self._state().update([SavedTransactions(pending, tuple(self._current))])

    def waits_for_checkpoint(self) -> bool:
        return True

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        for complete in [each for each in sorted(self._pending) if each <= checkpoint_id]:
            for transaction in self._pending[complete]:
                self.function.commit(transaction)
            del self._pending[complete]

    def _state(self) -> Any:
        return self.context.operator_state.get_list_state(ListStateDescriptor(TRANSACTIONS_STATE))
