"""Runs a source function in a thread, and spools what it emits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

from penstock.common.clocks import wall_clock_ms
from penstock.common.exceptions import JobExecutionError, StateAccessError
from penstock.common.own_copies import own_copy
from penstock.common.timestamps import whole_milliseconds
from penstock.common.watermark_generator import time_of
from penstock.datastream.accumulators import Accumulator
from penstock.datastream.functions import CheckpointedFunction, ListCheckpointed, SourceContext
from penstock.jobmaster.execution.stage_executor import EpochCancelledError
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.runtime.element_copies import copied
from penstock.runtime.operators.base import OperatorContext
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.operator import Saved
from penstock.runtime.user_function import UserFunction

_log = logging.getLogger(__name__)
_CANCEL_POLL_S = 0.1


class _StoppedError(BaseException):
    """Ends a function that keeps emitting after it was cancelled. No `except Exception` of the user's catches it."""


class CheckpointLock:
    """What functions hold while they emit. After its last release the thread waits until there is space."""

    def __init__(self, wait_for_space: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._wait_for_space = wait_for_space

    def __enter__(self) -> CheckpointLock:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        is_free = self._depth == 0
        self._lock.release()
        # Not before: the thread that makes space may need the lock.
        if is_free and error is None:
            self._wait_for_space()

    def acquire_for_job(self, is_cancelled: Callable[[], bool]) -> None:
        """Acquire it for the job, which can be cancelled even if a function never releases the lock."""
        while not self._lock.acquire(timeout=_CANCEL_POLL_S):
            if is_cancelled():
                raise EpochCancelledError

    def release_for_job(self) -> None:
        self._lock.release()

    @contextmanager
    def held_by_job(self, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        self.acquire_for_job(is_cancelled)
        try:
            yield
        finally:
            self.release_for_job()


class _SpoolingContext(SourceContext):
    def __init__(self, spool: ElementSpool) -> None:
        self._spool = spool
        self.lock = CheckpointLock(self._wait_for_space)
        self.is_closed = False

    def collect(self, element: Any) -> None:
        with self.lock:
            self._check()
            self._spool.add(copied(element), None)

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        with self.lock:
            self._check()
            self._spool.add(copied(element), whole_milliseconds(timestamp, "a source function"))

    def emit_watermark(self, timestamp: int) -> None:
        with self.lock:
            self._check()
            self._spool.add_watermark(time_of(timestamp))

    def mark_as_temporarily_idle(self) -> None:
        with self.lock:
            self._check()
            self._spool.add_idleness()

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        return self.lock

    def close(self) -> None:
        self.is_closed = True

    def _wait_for_space(self) -> None:
        if not self.is_closed:
            self._spool.wait_for_space()

    def _check(self) -> None:
        if self.is_closed:
            raise _StoppedError


class _DriverRuntimeContext(StreamingRuntimeContext):
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        raise StateAccessError(
            f"source function '{self.operator_context.operator_name}': accumulators belong to functions in subtasks, "
            f"and a source function runs in the driver; count '{name}' in a map after the source"
        )


def keeps_state(function: Any) -> bool:
    """True if the function can continue where a checkpoint stood."""
    return isinstance(function, (CheckpointedFunction, ListCheckpointed))


class FunctionReceiver:
    """One run of the function of one subtask, from `start` to `join`."""

    def __init__(
        self,
        function: Any,
        setup: SourceSetup,
        subtask: int,
        spool: ElementSpool,
        saved: Saved | None,
        restored_checkpoint_id: int | None,
        attempt: int,
    ) -> None:
        self._setup = setup
        self._subtask = subtask
        self._user_function = UserFunction(own_copy(function), "run")
        self._context = OperatorContext(
            setup.task(subtask, attempt),
            setup.name,
            setup.operator_id,
            wall_clock_ms,
            restored_checkpoint_id=None if saved is None else restored_checkpoint_id,
        )
        if saved is not None:
            self._context.operator_state.restore(saved)
        self._emitter = _SpoolingContext(spool)
        name = f"source function '{setup.name}' {subtask + 1}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.is_open = False
        self._is_held = False
        self._is_stopped = False
        self.has_ended = False
        """True once the function has returned."""
        self.failure: JobExecutionError | None = None

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        failure: JobExecutionError | None = None
        try:
            with self._emitter.lock:
                self._user_function.open(_DriverRuntimeContext(self._context, has_keyed_state=False))
                self.is_open = True
            self._user_function.call(self._emitter)
        except _StoppedError:
            pass
        except (Exception, SystemExit) as error:  # A function that dies silently would stall the job.
            failure = None if self._is_stopped else self._setup.error_of(error, self._subtask)
        self._emitter.close()
        # The failure last: once it is seen, another run may take this one's place.
        self.has_ended = failure is None
        self.failure = failure
        self._setup.on_change()

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def locked(self) -> AbstractContextManager[None]:
        """While held, the function emits nothing, and its state fits what it has emitted."""
        return self._emitter.lock.held_by_job(self._setup.is_cancelled)

    def catch_up(self) -> None:
        """A function emits when it likes."""

    def hold(self) -> None:
        """Let the function emit nothing more, until `let_go` is called by the same thread."""
        if not self._is_held:
            self._emitter.lock.acquire_for_job(self._setup.is_cancelled)
            self._is_held = True

    def let_go(self) -> None:
        if self._is_held:
            self._is_held = False
            self._emitter.lock.release_for_job()

    def snapshot(self, checkpoint_id: int) -> Saved:
        """The function's state; called while locked."""
        try:
            for participant in self._context.participants:
                participant.snapshot_state(checkpoint_id)
        except Exception as error:
            raise self._setup.error_of(error, self._subtask) from error
        return self._context.operator_state.snapshot()

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        if not self._context.participants:
            return
        try:
            with self.locked():
                for participant in self._context.participants:
                    participant.notify_checkpoint_complete(checkpoint_id)
        except Exception as error:
            raise self._setup.error_of(error, self._subtask) from error

    # --- the end ---------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask the function to end; it runs until it notices."""
        self._is_stopped = True
        self._emitter.close()
        self.let_go()
        if self._thread.is_alive():
            self._quietly(self._user_function.function.cancel, "cancel()")

    def join(self, timeout_ms: int) -> None:
        """Wait for the function to end, and close it."""
        if self._thread.ident is not None:
            self._thread.join(timeout_ms / 1000)
        if self._thread.is_alive():
            _log.warning(
                "source '%s', subtask %d: run() has not returned %d ms after cancel(), and is left behind; cancel() "
                "must make run() return",
                self._setup.name,
                self._subtask + 1,
                timeout_ms,
            )
            return
        self._quietly(self._user_function.close, "close()")

    def _quietly(self, call: Callable[[], None], what: str) -> None:
        try:
            call()
        except Exception:  # The function is no longer needed: its failure changes nothing.
            _log.warning("source '%s': %s failed", self._setup.name, what, exc_info=True)
