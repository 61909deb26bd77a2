"""A program on a terminal of its own, and what a person would see there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator, Sequence

import pyte


def on_a_terminal(
    command: Sequence[str], rows: int = 24, columns: int = 80, environment: dict[str, str] | None = None
) -> Iterator[list[str]]:
    """Run a program; gives what the screen shows whenever that has changed, until the program ends."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(environment or {})
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    try:
        with contextlib.suppress(OSError):  # This is how Linux reports that the last one has hung up.
            while content := os.read(terminal, 65536):
                stream.feed(content)
                yield [line.rstrip() for line in screen.display]
    finally:
        os.close(terminal)  # Ends it, if it has not ended.
        os.waitpid(process, 0)
