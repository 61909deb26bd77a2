"""Ports for servers that are told on which one to listen."""

from __future__ import annotations

import contextlib
import random
import socket

# Below the ports that systems hand out by themselves: no connection of any process takes one of these by chance between
# here and the moment when the server listens.
_CANDIDATES = range(12_000, 32_000)
_random = random.SystemRandom()  # Not what Hypothesis seeds: other processes look for ports at the same time.
_given: set[int] = set()


def free_port() -> int:
    """A port of the loopback device on which nothing listens; another one with each call."""
    while True:
        port = _random.choice(_CANDIDATES)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), contextlib.closing(socket.create_server(("127.0.0.1", port))):
        return True
    return False
