"""How far a source was read that hands its elements over by itself. Savepoints hold these classes by these names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionCut:
    """A place between two chunks, and the state the function had there."""

    number: int
    state: bytes | None = None
    """None if the function keeps none, or has just begun."""
    has_ended: bool = False
    """True if the end was planned."""
    is_over: bool = False
    """True if there is nothing to read but the end: the source had ended in the job that this one continues."""


@dataclass(frozen=True)
class FunctionPosition:
    checkpoint_id: int
    cuts: tuple[FunctionCut, ...]
    """By subtask."""
