"""What the client of the REST API makes of servers that behave in unusual ways."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.rest.client import Address, RestClient, RestClientError
from penstock.rest.security.access import ClientAccess

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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("200 OK\r\nContent-Length: 6\r\n\r\n<html>", "GET /jobs gave no JSON"),
        ("307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n", "refers to another server, but not to which"),
    ],
)
def test_server_that_is_no_job_manager_is_reported(listener, answer, said):
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(f"HTTP/1.1 {answer}".encode())

    threading.Thread(target=serve, daemon=True).start()
    with pytest.raises(RestClientError, match=f"does not answer as a job manager .*{said}"):
        RestClient(Address(path=Path(listener.getsockname()))).get("/jobs")


def test_name_that_no_host_can_have_is_reported():
    access = ClientAccess(is_checked=False)
    with pytest.raises(RestClientError, match=r"nobody answers at river\.\.rain:8081"):
        RestClient(Address.parse("river..rain", access)).get("/jobs")


@pytest.mark.parametrize(
    "text", ["host:²", "host:８０８１", "host:0", "host:65536", "host:", ":8081", "http://host:1/x"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(RestClientError, match="is no address of a job manager"):
        Address.parse(text)
