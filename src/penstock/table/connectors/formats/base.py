"""What a format is: messages to rows, and rows to messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common.exceptions import ConnectorError
from penstock.table.connectors.options import Options
from penstock.table.rows import RowTuple
from penstock.table.types import RowType


class RowDecoder(ABC):
    """Makes rows of messages. It is pickled as what it was made from."""

    skips_errors_option = "ignore-parse-errors"

    def __init__(self, row_type: RowType, options: Options, zone: str = "UTC") -> None:
        self.row_type = row_type
        self.options = options
        self.zone = zone
        self.skips_errors = options.flag(self.skips_errors_option)
        self.prepare()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type, self.options, self.zone)

    @abstractmethod
    def prepare(self) -> None:
        """Check the options and compile what reading needs."""

    @abstractmethod
    def decode(self, message: bytes) -> list[RowTuple]:
        """The rows of a message; raises ValueError, TypeError or LookupError if it cannot be read."""

    def rows(self, message: bytes | None) -> list[RowTuple]:
        """The rows of a message; of one that cannot be read none, if the table's options say so."""
        if message is None:
            return []
        try:
            return self.decode(message)
        except (ValueError, TypeError, LookupError, ArithmeticError) as failure:
            if self.skips_errors:
                return []
            raise ConnectorError(
                f"{self.options.owner}: {message!r} cannot be read as {self.row_type.as_sql()}: {failure}; to skip "
                f"such messages set '{self.skips_errors_option}' of the format"
            ) from failure


class RowEncoder(ABC):
    """Makes messages of rows. It is pickled as what it was made from."""

    has_changes = False
    """True if `encode` needs a row's kind."""

    def __init__(self, row_type: RowType, options: Options, zone: str = "UTC") -> None:
        self.row_type = row_type
        self.options = options
        self.zone = zone
        self.prepare()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type, self.options, self.zone)

    @abstractmethod
    def prepare(self) -> None:
        """Check the options and compile what writing needs."""

    @abstractmethod
    def encode(self, row: RowTuple, kind: int = 0) -> bytes:
        """The message of a row."""
