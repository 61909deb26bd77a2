"""Clients of object stores are kept: each has connections, which cost a handshake."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from penstock.files.arrow_store import ArrowStore


class Bucket(http.server.ThreadingHTTPServer):
    """Says of every object that it has five bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.connections = 0
        self.asked: list[str] = []


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_HEAD(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.send_header("Last-Modified", "Wed, 12 Oct 2022 17:50:00 GMT")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nobody wants to know."""


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_files_of_one_bucket_are_asked_for_over_the_same_connection(bucket):
    for path in ("job", "job/chk-1", "job/chk-2/_metadata", "", "/"):
        location = (
            f"s3://access:secret@bucket/{path}?endpoint_override=127.0.0.1:{bucket.server_port}&region=x&scheme=http"
        )
        store, found = ArrowStore.at(location)
        assert found == f"bucket/{path}".rstrip("/")
        assert store.size_of("bucket/a file") == 5
    assert (len(bucket.asked), bucket.connections) == (5, 1)


def test_other_buckets_and_users_have_clients_of_their_own():
    stores = [ArrowStore.at(f"s3://{who}/path?region=x")[0] for who in ("bucket", "other", "key:secret@bucket")]
    assert len(set(map(id, stores))) == 3


def test_names_that_are_quoted_in_a_uri_are_read_as_arrow_reads_them():
    ArrowStore.at("s3://bucket/path?region=x")
    assert ArrowStore.at("s3://bucket/a%20name?region=x")[1] == "bucket/a name"
