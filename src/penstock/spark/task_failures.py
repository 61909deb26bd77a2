"""What went wrong in a Spark task, without the frames of Spark and Java around it."""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last):"


def reason_in(message: str) -> str:
    """The exception of the Python code that failed, out of what Spark says of it; else the first line of that."""
    # Of several, the last one is that of the exception that the others have led to.
    _, has_traceback, after = message.rpartition(_TRACEBACK)
    lines = after.splitlines()[1:] if has_traceback else message.splitlines()
    found = next((at for at, line in enumerate(lines) if line and not line[0].isspace()), None)
    if found is None:
        return message
    # The message of an exception may have several lines; Java's frames, or a blank line, end it.
    rest = lines[found + 1 :] if has_traceback else []
    until = next((at for at, line in enumerate(rest) if not line.strip() or line.lstrip().startswith("at ")), len(rest))
    return "\n".join([lines[found], *rest[:until]])
