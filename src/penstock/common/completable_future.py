"""The result of something that is still running."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that comes later; `result()` waits for it.

    >>> future = CompletableFuture[int]()
    >>> future.complete(3)
    True
    >>> future.result()
    3
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future that has this result already."""
        future = CompletableFuture[T]()
        future.complete(value)
        return future

    def cancel(self) -> bool:
        """True if the result will never come because of this call or an earlier one."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """True if the result will never come because the future was cancelled."""
        return self._future.cancelled()

    def done(self) -> bool:
        """True once there is a result, an error or a cancellation."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait (at most `timeout` seconds) and return the result or raise the error."""
        return self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The error if there is one by now; never waits."""
        if not self._future.done() or self._future.cancelled():
            return None
        return self._future.exception()

    def complete(self, value: T) -> bool:
        """Set the result; False if the future was done before."""
        try:
            self._future.set_result(value)
        except InvalidStateError:
            return False
        return True

    def complete_exceptionally(self, error: BaseException) -> bool:
        """Set the error; False if the future was done before."""
        try:
            self._future.set_exception(error)
        except InvalidStateError:
            return False
        return True

    def __repr__(self) -> str:
        if not self.done():
            return "CompletableFuture(not completed)"
        if self.cancelled():
            return "CompletableFuture(cancelled)"
        error = self.exception()
        return f"CompletableFuture(failed: {error!r})" if error else f"CompletableFuture({self.result()!r})"


def interruptible_result(future: Future[T]) -> T:
    """The result of a future, waited for in short steps, so that Ctrl-C is seen at once."""
    while True:
        try:
            return future.result(timeout=0.2)
        except FutureTimeoutError:
            if future.done():
                raise
