"""An endless text on a local socket: what `nc -lk` and someone typing would be, without the typing."""

from __future__ import annotations

import itertools
import socket
import threading

LINES = (
    "the river runs down to the sea",
    "and the sea is never full",
    "the water turns the wheel and the wheel grinds the corn",
    "still the river runs",
    "rain falls on the hills and the hills feed the river",
    "no one steps into the same river twice",
)


class TextServer:
    """Sends the lines over and over to each client, `lines_per_second` a second, until closed."""

    def __init__(self, lines_per_second: float = 5.0) -> None:
        self._pause_s = 1 / lines_per_second
        self._closed = threading.Event()
        self._listening = socket.create_server(("localhost", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, name="demo-text", daemon=True).start()

    def __enter__(self) -> TextServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._closed.set()
        self._listening.close()

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed while waiting
                return
            threading.Thread(target=self._send, args=(connection,), daemon=True).start()

    def _send(self, connection: socket.socket) -> None:
        with connection:
            for line in itertools.cycle(LINES):
                if self._closed.wait(self._pause_s):
                    return
                try:
                    connection.sendall(f"{line}\n".encode())
                except OSError:  # the reader went away
                    return
