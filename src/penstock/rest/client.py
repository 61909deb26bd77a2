"""A client of Penstock's REST API, over a Unix socket or TCP. Needs nothing but Python."""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from penstock.common.exceptions import PenstockError
from penstock.rest import sockets
from penstock.rest.security.access import OWN_SERVERS, ClientAccess
from penstock.rest.security.access_token import PROOF, AccessToken, is_loopback, new_nonce

DEFAULT_PORT = 8081
LEADERSHIP = "/jobmanager/leadership"
"""Where a job manager with others that stand by says who leads."""
SUBMITTER = "Penstock-Submitter"
"""The header that distinguishes the client that submitted a job from others who read its output."""
_ANSWER_S = 60
_MOST_REFERRALS = 3
_LONGEST_PROOF = 4096


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
    access: ClientAccess = field(default=OWN_SERVERS, compare=False, repr=False)

    @staticmethod
    def parse(text: str, access: ClientAccess = OWN_SERVERS) -> Address:
        """`host:port`, `host` (port 8081), `[::1]:8081`, `http://host:port/`."""
        if text.startswith("https://") and access.tls is None:
            raise RestClientError(f"{text!r} asks for TLS; set security.ssl.rest.enabled: true, and write host:port")
        name = text.removeprefix("http://").removeprefix("https://").rstrip("/")
        host, colon, port = name.rpartition(":")
        if not colon or name.endswith("]"):
            host, port = name, str(DEFAULT_PORT)
        if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
            raise RestClientError(f"{text!r} is no address of a job manager; write host:port, such as localhost:8081")
        return Address(host=host.strip("[]"), port=int(port), access=access)

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


@dataclass(frozen=True)
class _Proof:
    """What a server says to show that it knows the token."""

    host: str
    port: int
    digest: str

    @staticmethod
    def parse(content: bytes) -> _Proof | None:
        """None if it is not a proof at all."""
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            claim = json.loads(content)
            return _Proof(str(ipaddress.ip_address(claim["host"])), int(claim["port"]), str(claim["proof"]))
        return None


class RestClient:
    """One request, one connection: a job manager may come and go in between.

    One that stands by refers to the leader, which is then asked directly for as long as it answers. A job manager of
    this user on this machine is asked through its Unix socket. Any other must prove that it knows the token, on the
    same connection, before it is sent the token or is trusted: what it sends may be unpickled.
    """

    def __init__(self, address: Address, timeout_s: float = _ANSWER_S) -> None:
        self.address = address
        self._leader = address
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"<RestClient of {self.address}>"

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
                content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        try:
            return json.loads(content)
        except ValueError as error:
            raise self._stranger(f"{method} {path} gave no JSON") from error

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """The response, to be read and closed by the caller; refusals are raised."""
        for _ in range(_MOST_REFERRALS):
            response = self._send(method, path, body, headers)
            if response.status != http.client.TEMPORARY_REDIRECT:
                return response
            with response:
                location = response.headers["Location"]
            if location is None:
                raise self._stranger("it refers to another server, but not to which")
            self._leader = Address.parse(urlsplit(location).netloc, self.address.access)
            if hasattr(body, "seek"):
                body.seek(0)
        raise RestClientError(f"job managers refer to each other as the leader, the last one to {self._leader}", 503)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str] | None) -> http.client.HTTPResponse:
        connection: http.client.HTTPConnection | None = None
        try:
            connection = self._connected()
            given = {**(headers or {"Content-Type": "application/json"}), **self._authorization(connection)}
            # A server may answer and hang up before it has read a long body: what it says counts.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, {**given, "Connection": "close"})
            response = connection.getresponse()
            if response.status >= 400:
                with response:
                    raise RestClientError(_error_text(response.read(), response.reason), response.status)
        except RestClientError as refusal:
            if connection is not None:
                connection.close()
            if refusal.status == http.client.UNAUTHORIZED:  # The one named as the leader may be a stranger.
                self._leader = self.address
            raise
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # The last for what can be no host's name.
            if connection is not None:
                connection.close()
            unreachable = self._unreachable(error)
            self._leader = self.address
            raise unreachable from error
        return response

    def _connected(self) -> http.client.HTTPConnection:
        """A connection that never connects a second time: only this one is known to lead to a holder of the token."""
        connection = self._own_connection() or self._connection(self._leader)
        connection.auto_open = 0
        if connection.sock is None:
            connection.connect()
        return connection

    def _connection(self, address: Address) -> http.client.HTTPConnection:
        if address.path is not None:
            return _UnixConnection(address.path, self._timeout_s)
        tls = address.access.tls
        if tls is not None:
            return http.client.HTTPSConnection(address.host, address.port, timeout=self._timeout_s, context=tls)
        return http.client.HTTPConnection(address.host, address.port, timeout=self._timeout_s)

    def _own_connection(self) -> http.client.HTTPConnection | None:
        """To the job manager that this user has on a port of this machine; None if there is none."""
        if self._leader.path is not None or not is_loopback(self._leader.host):
            return None
        connection = _UnixConnection(sockets.folder() / f"jobmanager-{self._leader.port}", self._timeout_s)
        try:
            connection.connect()
        except OSError:
            connection.close()
            return None
        return connection

    def _authorization(self, connection: http.client.HTTPConnection) -> dict[str, str]:
        access = self._leader.access
        if isinstance(connection, _UnixConnection) or not access.is_checked:
            return {}
        token = access.token_for(self._leader.host, self._leader.port)
        if token is None:
            raise RestClientError(
                f"no token is known for the job manager at {self._leader}; set rest.auth.token-file to a file with "
                f"its token, which `penstock jobmanager token` shows its user, or rest.auth.enabled: false if it needs "
                f"none",
                401,
            )
        self._check_proof(connection, token)
        return {"Authorization": f"Bearer {token.secret}"}

    def _check_proof(self, connection: http.client.HTTPConnection, token: AccessToken) -> None:
        """Raise unless the server knows the token.

        The proof names the address at which its maker was asked, so a server that only passes on what another one says
        is found out. Through a tunnel, and beyond this machine, addresses change on the way: TLS helps there.
        """
        peer, port = connection.sock.getpeername()[:2]
        is_here = is_loopback(peer) or connection.sock.getsockname()[0] == peer
        nonce = new_nonce()
        connection.request("GET", f"{PROOF}?nonce={nonce}")
        with connection.getresponse() as response:
            content = response.read(_LONGEST_PROOF)
        proof = _Proof.parse(content)
        if proof is None or token.proof(nonce, proof.host, proof.port) != proof.digest:
            raise RestClientError(
                f"the server at {self._leader} does not know the token, so nothing is sent to it; is it another "
                f"user's, or is rest.auth.token or rest.auth.token-file an old one?",
                401,
            )
        access = self._leader.access
        may_differ = access.is_forwarded or access.tls is not None or not is_here
        if not may_differ and (ipaddress.ip_address(peer), port) != (ipaddress.ip_address(proof.host), proof.port):
            raise RestClientError(
                f"{self._leader} leads to a server that listens on {proof.host}:{proof.port}: somebody is in between; "
                f"set rest.auth.forwarded: true if you have forwarded the port yourself",
                401,
            )

    def _stranger(self, reason: str) -> RestClientError:
        return RestClientError(f"{self._leader} does not answer as a job manager ({reason}); is the address right?")

    def _unreachable(self, error: Exception) -> RestClientError:
        return RestClientError(
            f"nobody answers at {self._leader} ({error}); is the job manager running? `penstock jobmanager status` "
            f"shows it, `penstock jobmanager start` starts one"
        )


def _error_text(content: bytes, reason: str) -> str:
    try:
        return "\n".join(json.loads(content)["errors"])
    except (ValueError, KeyError, TypeError):
        return reason
