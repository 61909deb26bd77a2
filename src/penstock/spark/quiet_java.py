"""Keeps lines off the terminal that Java prints whenever Spark starts and that tell a user nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NOISE = (b"WARNING: Using incubator modules",)


@contextmanager
def quiet_java() -> Iterator[None]:
    """A Java process started within writes its standard error through a filter, for as long as it lives."""
    reader, writer = os.pipe()
    terminal = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_forward, args=(reader, terminal), name="java-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(terminal, 2)


def _forward(reader: int, terminal: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not line.startswith(_NOISE):
                os.write(terminal, line)
