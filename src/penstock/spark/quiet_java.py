"""Keeps lines off the terminal that Java prints whenever Spark starts and that are of no use to a user."""

from __future__ import annotations

import os
import threading

_NOISE = (b"WARNING: Using incubator modules",)


def filtered_stderr() -> int:
    """A file descriptor for the standard error of a Java process: what is written there comes out of ours, filtered."""
    reader, writer = os.pipe()
    terminal = os.dup(2)
    threading.Thread(target=_forward, args=(reader, terminal), name="java-stderr", daemon=True).start()
    return writer


def _forward(reader: int, terminal: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not line.startswith(_NOISE):
                os.write(terminal, line)
    os.close(terminal)
