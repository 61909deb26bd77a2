"""What is said below the message of an error. Python 3.11 shows it in tracebacks, 3.10 does not know of it."""

from __future__ import annotations


def add_note(error: BaseException, note: str) -> None:
    error.__notes__ = [*notes_of(error), note]  # type: ignore[attr-defined]  # Python 3.10


def notes_of(error: BaseException) -> list[str]:
    notes: list[str] = getattr(error, "__notes__", [])
    return notes
