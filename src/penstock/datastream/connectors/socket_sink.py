"""Writing to a socket."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import ConnectorError
from penstock.common.serialization import SerializationSchema
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext

__all__ = ["SocketSink"]

_CONNECT_TIMEOUT_S = 30.0
_PAUSE_S = 0.5
"""Flink's pause before it connects again."""


@dataclass(frozen=True)
class SocketSink(Sink):
    """Sends the bytes of each element to a server, one after the other; see `DataStream.write_to_socket`.

    The server confirms nothing: elements may be lost when the connection breaks, and arrive twice after a failure.

    >>> from penstock.common import SimpleStringSchema
    >>> sink = env.from_collection(["a"]).write_to_socket("localhost", 1234, SimpleStringSchema())
    """

    host_name: str
    port: int
    schema: SerializationSchema
    max_num_retries: int = 0
    """How often to connect again when sending fails; -1 without limit."""

    def __post_init__(self) -> None:
        if not 0 < self.port < 65536:
            raise ValueError(f"write_to_socket: port must be from 1 to 65535, got {self.port}")
        if self.max_num_retries < -1:
            raise ValueError(f"write_to_socket: max_num_retries must be -1 or more, got {self.max_num_retries}")

    def create_writer(self, context: WriterInitContext) -> SocketWriter:
        return SocketWriter(self)


class SocketWriter(SinkWriter[Any]):
    """Connects with the first element, and sends each at once."""

    def __init__(self, sink: SocketSink, pause: Callable[[float], object] = time.sleep) -> None:
        self._sink = sink
        self._pause = pause
        self._socket: socket.socket | None = None

    def write(self, element: Any, context: SinkWriterContext) -> None:
        content = self._sink.schema.serialize(element)
        if content:
            self._send(content)

    def flush(self, end_of_input: bool) -> None:
        """Does nothing: each element is sent at once."""

    def close(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _send(self, content: bytes) -> None:
        attempt = 0
        while True:
            try:
                if self._socket is None:
                    address = (self._sink.host_name, self._sink.port)
                    self._socket = socket.create_connection(address, _CONNECT_TIMEOUT_S)
                    # Sending may take any time: a server that reads slowly slows the job down, as in Flink.
                    self._socket.settimeout(None)
                self._socket.sendall(content)
                return
            except OSError as failure:
                self.close()
                if attempt == self._sink.max_num_retries:
                    raise ConnectorError(
                        f"write_to_socket: {self._sink.host_name}:{self._sink.port} does not take elements after "
                        f"{attempt + 1} attempts: {failure}"
                    ) from failure
            attempt += 1
            self._pause(_PAUSE_S)
