"""What the client of the REST API makes of servers that behave in unusual ways."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.rest.client import Address, RestClient, RestClientError

MEGABYTE = 1 << 20


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        yield listening


def refuse_at_once(listener: socket.socket) -> None:
    """Answer to the head of a request, and hang up without reading its body."""
    connection, _ = listener.accept()
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1024)
        body = json.dumps({"errors": ["at most 10 bytes"]})
        connection.sendall(f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def hang_up(listener: socket.socket) -> None:
    listener.accept()[0].close()


def put_megabytes(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    client = RestClient(Address(path=Path(listener.getsockname())))
    client.put("/blobs/1", bytes(20 * MEGABYTE), 20 * MEGABYTE)


def test_refusal_that_comes_before_the_body_was_read_is_reported(listener):
    with pytest.raises(RestClientError, match="at most 10 bytes") as refused:
        put_megabytes(listener, refuse_at_once)
    assert refused.value.status == 413


def test_server_that_hangs_up_without_an_answer_is_reported_as_gone(listener):
    with pytest.raises(RestClientError, match="nobody answers at"):
        put_megabytes(listener, hang_up)
