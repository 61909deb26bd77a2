"""Asynchronous calls to slow systems: many elements wait for their results at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from penstock.datastream.functions import AsyncRetryStrategy
from penstock.graph.descriptions import AsyncDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.user_function import UserFunctionOperator


class EventLoopThread:
    """An event loop in its own thread. `on_exit` gets the SystemExit or KeyboardInterrupt that a coroutine raises."""

    def __init__(self, name: str, on_exit: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._on_exit = on_exit
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._loop.run_forever()
                return
            except (SystemExit, KeyboardInterrupt) as ended:  # Other exceptions stay within their coroutine.
                self._on_exit(ended)

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Cancel all running coroutines, and wait until the thread has ended."""
        self.submit(_cancel_all_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    # A coroutine that refuses to be cancelled must not delay the end of the task.
    if others:
        await asyncio.wait(others, timeout=1)


LeaveOut = Callable[[Exception, Any, "int | None"], bool]
"""Gets an error, its element and the timestamp of that; False if the error is to fail the job."""


@dataclass(eq=False)
class _Call:
    """The call for one element. `results` or `error` is set when the call is complete."""

    timestamp: int | None
    value: Any = None
    """The element, if it may be left out."""
    results: list[Any] | None = None
    error: BaseException | None = None


class AsyncWaitOperator(UserFunctionOperator):
    """Runs `async_invoke` for up to `capacity` elements at a time.

    In ordered mode, results are emitted in the order of their elements. In unordered mode, they are emitted as they
    arrive, but never across a watermark. All calls are completed before a watermark passes and at the end of every
    epoch. So no call is in flight when a snapshot is taken, and snapshots contain no elements.

    The thread of the event loop only runs the user's coroutines; the thread of the task emits the results.
    """

    def __init__(self, description: AsyncDescription) -> None:
        super().__init__(description.function, ("async_invoke",))
        self._timeout_s = description.timeout_ms / 1000 if description.timeout_ms > 0 else None
        self._capacity = description.capacity
        self._is_ordered = description.is_ordered
        self._retries: AsyncRetryStrategy[Any] = description.retry_strategy
        predicate = self._retries.get_retry_predicate()
        self._retries_result = predicate.result_predicate() or _never
        self._retries_exception = predicate.exception_predicate() or _never
        self._loop: EventLoopThread | None = None
        self._in_flight: deque[_Call] = deque()
        self._answered: SimpleQueue[_Call] = SimpleQueue()
        self.leave_out: LeaveOut | None = None

    def open(self) -> None:
        self._loop = EventLoopThread(f"async-wait-{self.context.operator_name}", self._exited)
        super().open()

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        super().close()

    # --- the task's thread -----------------------------------------------------------------------------------------

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        for at, value in enumerate(batch.values):
            while len(self._in_flight) >= self._capacity:
                self._settle_next()
            self._start(value, None if batch.timestamps is None else batch.timestamps[at])
        self._settle_answered()

    def process_watermark(self, watermark: int) -> None:
        self._drain()
        super().process_watermark(watermark)

    def process_status(self, idle: bool) -> None:
        self._drain()
        super().process_status(idle)

    def advance_processing_time(self, now_ms: int) -> None:
        self._settle_answered()

    def end_epoch(self) -> None:
        self._drain()

    def finish(self) -> None:
        self._drain()

    def snapshot_state(self, checkpoint_id: int) -> None:
        self._drain()
        super().snapshot_state(checkpoint_id)

    def _start(self, value: Any, timestamp: int | None) -> None:
        assert self._loop is not None
        call = _Call(timestamp, None if self.leave_out is None else self.context.copied(value))
        self._in_flight.append(call)
        self._loop.submit(self._run(call, value))

    def _drain(self) -> None:
        while self._in_flight:
            self._settle_next()

    def _settle_answered(self) -> None:
        while not self._answered.empty():
            self._settle_next()

    def _settle_next(self) -> None:
        """Wait until a call is complete, and emit the results that can be emitted now.

        A failed call fails the task, unless its element is left out.
        """
        call = self._answered.get()
        if call.error is not None:
            if not self._is_left_out(call, call.error):
                raise call.error
            call.results = []
        if not self._is_ordered:
            self._in_flight.remove(call)
            self._emit(call.results, call.timestamp)
            return
        while self._in_flight and self._in_flight[0].results is not None:
            first = self._in_flight.popleft()
            self._emit(first.results, first.timestamp)

    def _is_left_out(self, call: _Call, error: BaseException) -> bool:
        if self.leave_out is None or not isinstance(error, Exception):
            return False
        return self.leave_out(error, call.value, call.timestamp)

    def _emit(self, results: list[Any] | None, timestamp: int | None) -> None:
        for result in results or ():
            self.output.collect(result, timestamp)

    # --- the loop's thread -----------------------------------------------------------------------------------------

    async def _run(self, call: _Call, value: Any) -> None:
        # The result does not pass through a future, which would replace some exceptions and lose their traceback.
        try:
            call.results = await self._answer(value)
        except asyncio.CancelledError as exc:
            call.error = RuntimeError(f"operator '{self.context.operator_name}': async_invoke was cancelled")
            call.error.__cause__ = exc
        except (Exception, SystemExit, KeyboardInterrupt) as exc:  # The task's thread raises it.
            call.error = exc
        self._answered.put(call)

    def _exited(self, ended: BaseException) -> None:
        """Fail the task if a coroutine tries to end the process, as for functions that are not async."""
        self._answered.put(_Call(None, error=ended))

    async def _answer(self, value: Any) -> list[Any]:
        """The results of `async_invoke`, or those of `timeout` if all attempts together take too long."""
        attempts = asyncio.ensure_future(self._try(value))
        try:
            done, _ = await asyncio.wait({attempts}, timeout=self._timeout_s)
        except asyncio.CancelledError:
            attempts.cancel()
            raise
        if done:
            return self._listed(attempts.result(), value, "async_invoke")
        attempts.add_done_callback(_forget)
        attempts.cancel()
        return self._listed(self.user_function.function.timeout(value), value, "timeout")

    async def _try(self, value: Any) -> Any:
        attempt = 1
        while True:
            try:
                results = await self.calls[0](value)
            except Exception as exc:
                if not (self._retries_exception(exc) and self._retries.can_retry(attempt)):
                    raise
            else:
                if not (self._retries_result(results) and self._retries.can_retry(attempt)):
                    return results
            await asyncio.sleep(self._retries.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    def _listed(self, results: Any, value: Any, method: str) -> list[Any]:
        if isinstance(results, Iterable):
            return list(results)
        # PyFlink's own words, for programs that search for them.
        rule = "cannot be none" if results is None else "should be of list type"
        raise RuntimeError(
            f"The result of AsyncFunction {rule}, please check the methods 'async_invoke' and 'timeout' of class "
            f"'{type(self.user_function.function)}'. Operator '{self.context.operator_name}': {method} returned "
            f"{results!r} for {value!r}; return [] for no result"
        )


def _never(_: Any) -> bool:
    return False


def _forget(attempts: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a call that timed out, so that the event loop does not log it as never retrieved."""
    if not attempts.cancelled():
        attempts.exception()
