"""Asks a REST API of Penstock's, over a Unix socket or TCP. Needs nothing but Python."""

from __future__ import annotations

import http.client
import io
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from penstock.common.exceptions import PenstockError

DEFAULT_PORT = 8081
LEADERSHIP = "/jobmanager/leadership"
"""Where a job manager with others that stand by says who leads."""
_ANSWER_S = 60
_MOST_REFERRALS = 3


class RestClientError(PenstockError):
    """A request was refused, or there was nobody to answer it. `status` is HTTP's, None if nobody answered."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Address:
    """A Unix socket, or a host and port."""

    path: Path | None = None
    host: str = ""
    port: int = 0

    @staticmethod
    def parse(text: str) -> Address:
        """`host:port`, `host` (port 8081), `[::1]:8081`, `http://host:port/`."""
        name = text.removeprefix("http://").rstrip("/")
        host, colon, port = name.rpartition(":")
        if not colon or name.endswith("]"):
            host, port = name, str(DEFAULT_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise RestClientError(f"{text!r} is no address of a job manager; write host:port, such as localhost:8081")
        return Address(host=host.strip("[]"), port=int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.path is None else str(self.path)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class RestClient:
    """One request, one connection: a job manager may come and go in between.

    One that stands by refers to the leader, which is then asked directly for as long as it answers.
    """

    def __init__(self, address: Address, timeout_s: float = _ANSWER_S) -> None:
        self.address = address
        self._leader = address
        self._timeout_s = timeout_s

    def get(self, path: str, **query: str) -> Any:
        return self._ask("GET", path + ("?" + urlencode(query) if query else ""))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._ask("POST", path, json.dumps(body or {}).encode())

    def patch(self, path: str) -> Any:
        return self._ask("PATCH", path)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def put(self, path: str, content: bytes | Path, size: int) -> None:
        """Upload bytes or a file."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as body:
            self.open("PUT", path, body, headers).close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        try:
            with self.open(method, path, body) as response:
                return json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """The response, to be read and closed by the caller; refusals are raised."""
        for _ in range(_MOST_REFERRALS):
            response = self._send(method, path, body, headers)
            if response.status != http.client.TEMPORARY_REDIRECT:
                return response
            with response:
                self._leader = Address.parse(urlsplit(response.headers["Location"]).netloc)
            if hasattr(body, "seek"):
                body.seek(0)
        raise RestClientError(f"job managers refer to each other as the leader, the last one to {self._leader}", 503)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str] | None) -> http.client.HTTPResponse:
        connection = self._connection()
        try:
            given = headers or {"Content-Type": "application/json"}
            connection.request(method, path, body, {**given, "Connection": "close"})
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            unreachable = self._unreachable(error)
            self._leader = self.address
            raise unreachable from error
        if response.status >= 400:
            with response:
                raise RestClientError(_told(response.read(), response.reason), response.status)
        return response

    def _connection(self) -> http.client.HTTPConnection:
        if self._leader.path is not None:
            return _UnixConnection(self._leader.path, self._timeout_s)
        return http.client.HTTPConnection(self._leader.host, self._leader.port, timeout=self._timeout_s)

    def _unreachable(self, error: Exception) -> RestClientError:
        return RestClientError(
            f"nobody answers at {self._leader} ({error}); is the job manager running? `penstock jobmanager status` "
            f"tells, `penstock jobmanager start` starts one"
        )


def _told(content: bytes, reason: str) -> str:
    try:
        return "\n".join(json.loads(content)["errors"])
    except (ValueError, KeyError, TypeError):
        return reason
