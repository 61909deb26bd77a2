"""A small object store that speaks as much of S3's language as Arrow's client does, and remembers what it was asked."""

from __future__ import annotations

import http.server
import io
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
BUCKET = "bucket"


class ObjectStore(http.server.ThreadingHTTPServer):
    """One bucket in memory. `asked` lists the requests as `METHOD key`, with `copy` for a copy on the server."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.asked: list[str] = []
        self.delay_s = 0.0
        """How long each request takes."""
        self.lock = threading.Lock()

    def uri(self, path: str) -> str:
        settings = f"endpoint_override=127.0.0.1:{self.server_port}&region=x&scheme=http"
        return f"s3://access:secret@{BUCKET}/{path}?{settings}"

    def names(self, prefix: str = "") -> list[str]:
        with self.lock:
            return sorted(key for key in self.objects if key.startswith(prefix))


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    with ObjectStore() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def do_HEAD(self) -> None:
        bucket, key, _ = self._asked()
        with self.server.lock:
            content = self.server.objects.get(key)
        if bucket != BUCKET or (key and content is None):
            return self._answer(404)
        self._answer(200, content or b"")

    def do_GET(self) -> None:
        bucket, key, query = self._asked()
        if bucket != BUCKET:
            return self._error(404, "NoSuchBucket")
        if "list-type" in query:
            return self._list(query)
        with self.server.lock:
            content = self.server.objects.get(key)
        if content is None:
            return self._error(404, "NoSuchKey")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted:
            content = content[int(wanted[1]) : int(wanted[2]) + 1]
        self._answer(206 if wanted else 200, content)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found, folders = "", set()
        for key in self.server.names(prefix):
            below = key[len(prefix) :]
            if delimiter and delimiter in below:
                folders.add(prefix + below.split(delimiter)[0] + delimiter)
            else:
                size = len(self.server.objects.get(key, b""))
                found += f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
                found += "<LastModified>2022-10-12T17:50:00.000Z</LastModified></Contents>"
        found += "".join(f"<CommonPrefixes><Prefix>{each}</Prefix></CommonPrefixes>" for each in sorted(folders))
        body = f"<ListBucketResult {_NAMESPACE}><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        self._answer(200, body.encode())

    def do_PUT(self) -> None:
        _, key, query = self._asked()
        content = self._body()
        if source := self.headers.get("x-amz-copy-source"):
            self.server.asked.append(f"copy {key}")
            content = self.server.objects[unquote(source).lstrip("/").partition("/")[2]]
        with self.server.lock:
            if "uploadId" in query:
                self.server.parts[query["uploadId"]][int(query["partNumber"])] = content
            else:
                self.server.objects[key] = content
        self._answer(200, b"<CopyObjectResult/>" if source else b"", etag='"tag"')

    def do_POST(self) -> None:
        _, key, query = self._asked()
        body = self._body()
        if "delete" in query:
            for each in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                self.server.objects.pop(each, None)
            return self._answer(200, f"<DeleteResult {_NAMESPACE}/>".encode())
        if "uploads" in query:
            upload = f"{key}-{len(self.server.asked)}"
            self.server.parts[upload] = {}
            made = f"<InitiateMultipartUploadResult {_NAMESPACE}><UploadId>{escape(upload)}</UploadId>"
            return self._answer(200, f"{made}</InitiateMultipartUploadResult>".encode())
        parts = self.server.parts.pop(query["uploadId"])
        with self.server.lock:
            self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
        done = f"<CompleteMultipartUploadResult {_NAMESPACE}><ETag>tag</ETag></CompleteMultipartUploadResult>"
        self._answer(200, done.encode())

    def do_DELETE(self) -> None:
        _, key, _ = self._asked()
        with self.server.lock:
            self.server.objects.pop(key, None)
        self._answer(204)

    def _asked(self) -> tuple[str, str, dict[str, str]]:
        """Bucket, key and settings of the request."""
        time.sleep(self.server.delay_s)
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.server.asked.append(f"{self.command} {key}")
        return bucket, key, query

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(_chunks(self.rfile, has_end=True))
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_chunked = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return b"".join(_chunks(io.BytesIO(content))) if is_chunked else content

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, content: bytes = b"", etag: str = '"tag"') -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Wed, 12 Oct 2022 17:50:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Nobody wants to know."""


def _chunks(stream: BinaryIO, has_end: bool = False) -> Iterator[bytes]:
    """Chunks, each behind a line with its length, up to an empty one. `has_end`: an empty line comes after that."""
    while length := int(stream.readline().partition(b";")[0], 16):
        yield stream.read(length)
        stream.readline()
    if has_end:
        stream.readline()
