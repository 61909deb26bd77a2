"""Clients that say too much, too slowly, or are too many."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock.jobmaster.dependencies.blob_store import BlobError, BlobStore
from penstock.rest.client import RestClientError
from penstock.rest.routes.errors import RestError
from penstock.rest.routes.operations import Operations
from penstock.rest.security.limits import MOST_BYTES, BodyLimit, LimitedProtocol, most_connections


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def is_hung_up(connection: socket.socket) -> bool:
    """True when the server has closed it; waits for that."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedProtocol, "look_every_s", 0.1)


POST = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
HALVES = {
    "nothing": b"",
    "half a head": b"GET /jobs HTTP/1.1\r\nHost: loc",
    "half a body": POST + b"Content-Length: 100\r\n\r\n{",
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n5",
}


@pytest.mark.parametrize("half", HALVES)
def test_half_a_request_does_not_hold_a_connection_for_ever(impatient, cluster, half):
    with contextlib.closing(connected(cluster.port)) as connection:
        connection.sendall(HALVES[half].replace(b"{}", cluster.token.secret.encode()))
        assert is_hung_up(connection)
    assert cluster.rest.get("/jobs") == {"jobs": []}


def test_second_request_of_a_connection_must_come_whole_too(impatient, cluster):
    with contextlib.closing(connected(cluster.port)) as connection:
        connection.sendall(b"GET /assets/none HTTP/1.1\r\nHost: localhost\r\n\r\nGET /jo")
        content = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                content += piece
    assert content.startswith(b"HTTP/1.1 404")


def test_nonsense_does_not_fill_the_log(cluster, caplog):
    with contextlib.closing(connected(cluster.port)) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert "Invalid HTTP request" not in caplog.text


def test_answer_may_take_its_time(impatient, cluster, eventually):
    """Who waits for an answer is not hung up on, however long it takes."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
        server.settimeout(30)
        env = cluster.environment()
        env.socket_text_stream("localhost", server.getsockname()[1]).print()
        client = env.execute_async("waiting")
        source = stack.enter_context(contextlib.closing(server.accept()[0]))
        output = stack.enter_context(cluster.rest.open("GET", f"/jobs/{client.get_job_id()}/output"))
        for _ in range(2):
            assert json.loads(output.readline()) == {}  # A sign of life, after much more time than a head may take
        source.sendall(b"river\n")
        assert any("river" in line.decode() for line in output)
        client.cancel().result(30)


def test_clients_that_are_too_many_are_hung_up_on_and_the_others_are_not(monkeypatch, cluster, eventually):
    monkeypatch.setattr(LimitedProtocol, "most_connections", 5)
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(contextlib.closing(connected(cluster.port))) for _ in range(5)]
        surplus = [stack.enter_context(contextlib.closing(connected(cluster.port))) for _ in range(20)]
        assert all(map(is_hung_up, surplus))
        first[0].sendall(b"GET /assets/none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert first[0].recv(100).startswith(b"HTTP/1.1 404")
    eventually(lambda: is_answered(cluster))


def is_answered(cluster: Any) -> bool:
    try:
        return bool(cluster.rest.get("/jobs") == {"jobs": []})
    except RestClientError:
        return False


def test_jobs_keep_most_of_the_descriptors():
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 8 <= most_connections() <= 256
    assert descriptors == resource.RLIM_INFINITY or most_connections() <= max(8, descriptors // 4)


@pytest.mark.parametrize("path", ["/savepoint-disposal", "/jobs", "/blobs/missing", "/v1/jobs"])
def test_body_that_is_too_large_is_refused_unread(cluster, path):
    head = POST.replace(b"/jobs", path.encode()).replace(b"{}", cluster.token.secret.encode())
    with contextlib.closing(connected(cluster.port)) as connection:
        connection.sendall(head + f"Content-Length: {MOST_BYTES + 1}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 413") and b"must not be larger than" in answer


def test_body_of_unknown_length_is_cut_off():
    read = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while True:
            read.append(await receive())

    async def receive() -> Any:
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    scope = {"type": "http", "method": "POST", "path": "/jobs", "headers": []}
    with pytest.raises(RestError, match="must not be larger than 100 bytes") as caught:
        asyncio.run(BodyLimit(app, 100)(scope, receive, receive))
    assert (caught.value.status, len(read)) == (413, 10)


def test_program_may_be_as_large_as_a_file():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while True:
            await receive()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    for path in ("/jars/upload", "/v1/jars/upload"):
        scope = {"type": "http", "method": "POST", "path": path, "headers": []}
        with pytest.raises(RestError, match=f"must not be larger than {100_000 + 64 * 1024} bytes"):
            asyncio.run(BodyLimit(app, 100, most_in_file=100_000)(scope, receive, receive))


def test_file_may_be_larger_than_a_request(cluster):
    content = b"x" * (MOST_BYTES + 1)
    cluster.rest.put(f"/blobs/{hashlib.sha256(content).hexdigest()}", content, len(content))


# --- blobs -----------------------------------------------------------------------------------------------------------


def put(store: BlobStore, content: bytes) -> str:
    blob = hashlib.sha256(content).hexdigest()
    with store.upload(blob) as upload:
        upload.write(content)
        upload.finish()
    return blob


def test_uploaded_files_have_a_limit_together(tmp_path):
    store = BlobStore(tmp_path, 100, 3600, 150)
    first = put(store, b"a" * 100)
    with pytest.raises(BlobError, match=r"at most 150.*penstock\.blob\.max-total-size") as caught:
        put(store, b"b" * 100)
    assert caught.value.status == 507
    for _ in range(3):
        put(store, b"c" * 25)  # What was given up takes no room, nor does what is there already.
    with pytest.raises(BlobError):
        put(store, b"d" * 26)
    os.utime(tmp_path / "blobs" / first, (time.time() - 7200,) * 2)
    store.clean(in_use=())
    assert store.missing([first]) == [first]
    put(store, b"d" * 100)


def test_file_that_two_clients_upload_at_once_is_counted_once(tmp_path, monkeypatch):
    store, content = BlobStore(tmp_path, 100, 0, 100), b"x" * 50
    blob = hashlib.sha256(content).hexdigest()
    with store.upload(blob) as first, store.upload(blob) as second:
        for upload in (first, second):
            upload.write(content)
        monkeypatch.setattr(Path, "exists", lambda self: False)  # Each looks before the other has finished.
        for upload in (first, second):
            upload.finish()
        monkeypatch.undo()
    os.utime(tmp_path / "blobs" / blob, (0, 0))
    store.clean(())
    put(store, b"y" * 100)  # There is room for it.


def test_damaged_upload_takes_no_room(tmp_path):
    store = BlobStore(tmp_path, 100, 3600, 100)
    for _ in range(3):
        with pytest.raises(BlobError, match="upload it again"), store.upload("0" * 64) as upload:
            upload.write(b"x" * 100)
            upload.finish()
    put(store, b"x" * 100)


def test_room_is_reported_to_the_client(start_cluster):
    cluster = start_cluster({"penstock.blob.max-total-size": "10"})
    content = b"x" * 11
    with pytest.raises(RestClientError, match="keeps at most 10") as caught:
        cluster.rest.put(f"/blobs/{hashlib.sha256(content).hexdigest()}", content, len(content))
    assert caught.value.status == 507


# --- operations ------------------------------------------------------------------------------------------------------


def test_operations_that_continue_have_a_limit():
    operations, going_on = Operations(60_000), []

    def begin() -> Future[Any]:
        going_on.append(Future())
        return going_on[-1]

    with pytest.raises(RestError, match="try again when some are done") as caught:
        for _ in range(1000):
            operations.begin("family", None, begin)
    assert caught.value.status == 503 and len(going_on) < 100
    for each in going_on:
        each.set_result(None)
    operations.begin("family", None, begin)


def test_results_that_are_kept_have_a_limit():
    operations, done = Operations(60_000), Future()
    done.set_result(None)
    begun = [operations.begin("family", None, lambda: done)["request-id"] for _ in range(1500)]
    assert operations.result("family", begun[-1], None, "cause")["status"] == {"id": "COMPLETED"}
    with pytest.raises(RestError, match="no longer kept"):
        operations.result("family", begun[0], None, "cause")
