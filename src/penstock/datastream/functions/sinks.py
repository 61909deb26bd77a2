"""Sinks written as Python functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.functions.base import Function, RichFunction

TXN = TypeVar("TXN")


class SinkFunction(Function):
    """Writes every element of a stream to another system. Elements may come again after a failure.

    >>> class Shout(SinkFunction):
    ...     def invoke(self, value, context):
    ...         print(value.upper())
    >>> _ = env.from_collection(["a", "b"]).add_sink(Shout())
    >>> _ = env.execute("shouting")
    A
    B
    """

    class Context(ABC):
        """What `invoke` can ask about the element being written."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The current processing time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current watermark."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Event time of the element; None if it has none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> SinkFunction:
        if cls is SinkFunction and (args or kwargs):
            raise UnsupportedFeatureError(
                f"SinkFunction({args[0] if args else kwargs!r}): a Java sink class cannot run here; "
                "write a subclass with invoke(value, context), or use stream.sink_to(...) with a connector"
            )
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one element."""

    def write_watermark(self, watermark: int) -> None:
        """Called for every watermark that reaches the sink."""

    def finish(self) -> None:
        """Called after the last element of a bounded stream: flush what is buffered."""


class RichSinkFunction(RichFunction, SinkFunction):
    """A sink function with a runtime context."""


class TwoPhaseCommitSinkFunction(RichSinkFunction, Generic[TXN]):
    """Writes exactly once to a target with transactions.

    One transaction per checkpoint: `begin_transaction`, `invoke` for every element, `pre_commit` when the checkpoint is
    taken, `commit` when it is complete. The transaction value is saved in the checkpoint, so it must be picklable;
    after a failure saved transactions are committed again, so `commit` must be idempotent.

    >>> import pathlib, tempfile, uuid
    >>> class Files(TwoPhaseCommitSinkFunction):
    ...     def __init__(self, folder):
    ...         self.folder = folder
    ...     def begin_transaction(self):
    ...         return f"{self.folder}/{uuid.uuid4()}.part"
    ...     def invoke(self, transaction, value, context):
    ...         with open(transaction, "a") as file:
    ...             print(value, file=file)
    ...     def pre_commit(self, transaction):
    ...         pass  # Each element is in the file already.
    ...     def commit(self, transaction):
    ...         part = pathlib.Path(transaction)
    ...         if part.exists():  # Otherwise it was committed before a failure, or nothing was written.
    ...             part.rename(part.with_suffix(".txt"))
    ...     def abort(self, transaction):
    ...         pathlib.Path(transaction).unlink(missing_ok=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = env.from_collection(["a", "b"]).add_sink(Files(folder))
    ...     _ = env.execute("files")
    ...     [file.read_text().split() for file in pathlib.Path(folder).glob("*.txt")]
    [['a', 'b']]
    """

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """Start a transaction and return what identifies it."""

    # Flink overloads invoke: with a transaction it takes the place of invoke(value, context).
    @abstractmethod
    def invoke(  # type: ignore[override]
        self, transaction: TXN, value: Any, context: SinkFunction.Context
    ) -> None:
        """Write one element within the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Flush everything, so that `commit` cannot fail because data is missing."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction visible; called again after a failure, even if it succeeded before."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Throw the transaction away."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction found in a checkpoint; `commit` unless overridden."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction found in a checkpoint; `abort` unless overridden."""
        self.abort(transaction)
