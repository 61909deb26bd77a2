"""Notes below the message of an error. Python 3.11 and newer show them in tracebacks, 3.10 does not."""

from __future__ import annotations


def add_note(error: BaseException, note: str) -> None:
    """What `error.add_note(note)` does from Python 3.11 on."""
    error.__notes__ = [*notes_of(error), note]  # type: ignore[attr-defined]  # Python 3.10


def notes_of(error: BaseException) -> list[str]:
    notes: list[str] = getattr(error, "__notes__", [])
    return notes
