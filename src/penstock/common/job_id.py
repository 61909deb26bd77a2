"""The ids of jobs."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

__all__ = ["JobID"]

_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, order=True)
class JobID:
    """The id of one run of a job: 32 hexadecimal digits."""

    value: str

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.value):
            raise ValueError(f"a job id has 32 hexadecimal digits (0-9, a-f), got {self.value!r}")

    @staticmethod
    def generate() -> JobID:
        """A new id, made of random bytes."""
        return JobID(secrets.token_hex(16))

    @staticmethod
    def from_hex_string(text: str) -> JobID:
        """The id with these digits, in upper or lower case; ValueError if they are not an id."""
        return JobID(text.lower())

    def to_hex_string(self) -> str:
        """The 32 digits, in lower case."""
        return self.value

    def __str__(self) -> str:
        return self.value
