"""Sources that push elements from a Python loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.functions.base import Function, RichFunction


class SourceContext(ABC):
    """Where a source function emits elements and watermarks.

    `SourceFunction` has an example.
    """

    @abstractmethod
    def collect(self, element: Any) -> None:
        """Emit an element without a timestamp (with ingestion time in processing-time jobs)."""

    @abstractmethod
    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """Emit an element with its event time in milliseconds."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """State that no element at or before `timestamp` will follow."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """State that nothing comes for now, so that others need not wait for this source's watermark."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """A lock for `with`: while it is held, no checkpoint comes between an element and what the function remembers.

        A function that keeps its own offset emits and advances it under the lock:

            with ctx.get_checkpoint_lock():
                ctx.collect(record)
                self.offset += 1

        Hold it briefly, never while waiting for input: a checkpoint waits for it. Where the source is ahead of the job,
        releasing it waits.
        """

    @abstractmethod
    def close(self) -> None:
        """Called by the runtime after `run` returned."""


class SourceFunction(Function):
    """Emits elements until it ends or is cancelled; runs with parallelism 1 unless it is a ParallelSourceFunction.

    It runs in a thread of the driver, and what it emits is spooled to disk before it enters the job, so even a source
    that cannot repeat itself is replayed after a failure of the job. A `CheckpointedFunction` continues exactly where
    the checkpoint was taken, also in a new process; see `SourceContext.get_checkpoint_lock`.

    >>> class Countdown(SourceFunction):
    ...     is_cancelled = False
    ...     def run(self, ctx):
    ...         for number in range(3, 0, -1):
    ...             if not self.is_cancelled:
    ...                 ctx.collect(number)
    ...     def cancel(self):
    ...         self.is_cancelled = True
    >>> list(env.add_source(Countdown()).execute_and_collect())
    [3, 2, 1]
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> SourceFunction:
        if cls is SourceFunction and (args or kwargs):
            raise UnsupportedFeatureError(
                f"SourceFunction({args[0] if args else kwargs!r}): a Java source class cannot run here; "
                "write a subclass with run(ctx) and cancel(), or use env.from_source(...) with a connector"
            )
        return super().__new__(cls)

    @abstractmethod
    def run(self, ctx: SourceContext) -> None:
        """Emit elements through `ctx`; returning ends a bounded source."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon; called from another thread."""


class ParallelSourceFunction(SourceFunction):
    """A source function that runs in as many subtasks as its parallelism says.

    >>> class Ones(ParallelSourceFunction):
    ...     def run(self, ctx):
    ...         ctx.collect(1)
    ...     def cancel(self):
    ...         pass
    >>> list(env.add_source(Ones()).set_parallelism(3).execute_and_collect())
    [1, 1, 1]
    """


class RichSourceFunction(RichFunction, SourceFunction):
    """A source function with a runtime context."""


class RichParallelSourceFunction(RichFunction, ParallelSourceFunction):
    """A parallel source function with a runtime context."""
