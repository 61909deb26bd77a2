"""What passes between stages: one row holds one chunk of one channel."""

from __future__ import annotations

from typing import NamedTuple

ACKNOWLEDGEMENT = -1
"""The `vertex` of a row that carries a TaskAck to the driver."""
FAILURE = -2
"""The `vertex` of a row that carries a TaskFailure to the driver."""
FROM_DRIVER = -1
"""The `edge` of a row that hands a source its part of the epoch."""


class Row(NamedTuple):
    vertex: int
    subtask: int
    edge: int
    channel: int
    """The subtask that sent it."""
    seq: int
    """Number within channel and epoch."""
    chunk: bytes
