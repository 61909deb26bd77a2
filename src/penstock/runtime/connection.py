"""Connections between a driver and its workers, and between workers.

Before anything else is read, both sides prove that they know the secret of the group. So nothing from a stranger or
from an earlier group is ever unpickled. Then frames follow: a fixed header and the bytes of a chunk.

    caller                                    listener
      "penstock" nonce(32)          ────▶
                                    ◀────     nonce(32) HMAC(secret, "listener" + both nonces)
      HMAC(secret, "caller" + both) ────▶
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO, cast

from penstock.common.exceptions import PenstockError
from penstock.common.port_range import listen
from penstock.runtime.rows import Row

_GREETING = b"penstock"
_NONCE_BYTES = 32
_PROOF_BYTES = hashlib.sha256().digest_size
_GREETING_TIMEOUT_S = 10
_ACCEPT_PAUSE_S = 0.1
"""How long a listener waits after a connection could not be accepted."""
_MOST_STRANGERS = 64
"""How many connections, beyond the expected ones, may be in the handshake at the same time."""
_PROBES = 4
"""How often the system asks the other side of a quiet connection before it counts as lost."""
_HEADER = struct.Struct("<qiiiiqQ")
_PEER = struct.Struct("3i")
"""What Linux says about the other end of a socket: process, user, group."""
JOINED_BYTES = 64 * 1024
"""Chunks up to this size are joined with their headers, so that many are sent at once."""


class Kind(IntEnum):
    """The `vertex` of a frame that is a message, not a row."""

    HELLO = -10
    """A caller introduces itself."""
    PEERS = -11
    """The driver sends the addresses of the other workers."""
    READY = -12
    DEPLOY = -13
    DEPLOYED = -14
    EPOCH = -15
    """The driver's command. The epoch's source rows have been sent before it."""
    DONE = -16
    MARK = -17
    """A worker has finished a stage; `seq` is the stage's number."""
    RELEASE = -18
    """The driver asks to drop the subtasks of the run."""
    RELEASED = -19
    LOST = -20
    """A worker has lost another one."""
    HEARTBEAT = -21
    STOP = -22
    HOST = -23
    """The driver asks the worker's process to host a worker of another region as well."""
    OUTPUT = -24
    """What functions have printed and logged."""
    THREADS = -25
    """The driver asks for a thread dump of the process, and the worker's answer, with the number of the request."""


class HandshakeError(PenstockError):
    """The other side does not know the secret, or does not follow the protocol."""


@dataclass(frozen=True)
class Address:
    """The address of a listener: a Unix socket, a TCP port, or both."""

    path: str | None = None
    host: str = ""
    port: int = 0


class Connection:
    """Frames over a socket. Any thread may send; only one may receive."""

    def __init__(self, endpoint: socket.socket) -> None:
        self._socket = endpoint
        self._stream = cast(BinaryIO, endpoint.makefile("rb", buffering=1 << 18))
        self._lock = threading.Lock()

    def send(self, epoch: int, row: Row) -> None:
        """Raises OSError if the other side is gone."""
        self.send_all(epoch, (row,))

    def send_message(self, kind: Kind, content: bytes = b"", epoch: int = 0, number: int = 0) -> None:
        self.send(epoch, Row(kind, 0, 0, 0, number, content))

    def send_all(self, epoch: int, rows: Iterable[Row]) -> None:
        """Send small rows together, because each transmission wakes up the other side."""
        with self._lock:
            self._send_all(epoch, rows)

    def send_unless_busy(self, kind: Kind, number: int = 0) -> None:
        """Send a message, or nothing if another thread is sending: that thread may be blocked for a long time.

        A heartbeat is not missed, because whatever is being sent shows life as well.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._send_all(0, [Row(kind, 0, 0, 0, number, b"")])
            finally:
                self._lock.release()

    def _send_all(self, epoch: int, rows: Iterable[Row]) -> None:
        joined: list[bytes] = []
        size = 0
        for vertex, subtask, edge, channel, seq, chunk in rows:
            joined.append(_HEADER.pack(epoch, vertex, subtask, edge, channel, seq, len(chunk)))
            if len(chunk) > JOINED_BYTES:
                self._socket.sendall(b"".join(joined))
                self._socket.sendall(chunk)
                joined, size = [], 0
                continue
            joined.append(chunk)
            size += len(chunk)
            if size > JOINED_BYTES:
                self._socket.sendall(b"".join(joined))
                joined, size = [], 0
        if joined:
            self._socket.sendall(b"".join(joined))

    def receive(self) -> tuple[int, Row]:
        """The next frame: its epoch and its row. Raises EOFError or OSError if no more frames follow."""
        epoch, vertex, subtask, edge, channel, seq, length = _HEADER.unpack(self._read(_HEADER.size))
        return epoch, Row(vertex, subtask, edge, channel, seq, self._read(length))

    def _read(self, length: int) -> bytes:
        content = self._stream.read(length)
        if len(content) < length:
            raise EOFError("the other side has closed the connection")
        return content

    def peer_process(self) -> int | None:
        """The id of the process at the other end; None if it is this one or on another machine, or not known."""
        if self._socket.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
            return None
        try:
            process, _, _ = _PEER.unpack(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        except OSError:  # It is closed.
            return None
        return process if process not in (0, os.getpid()) else None

    def local_host(self) -> str | None:
        """The address of this side, as the other side sees it; None on a Unix socket."""
        return None if self._socket.family == socket.AF_UNIX else str(self._socket.getsockname()[0])

    def expect_answers(self, within_s: float) -> None:
        """Have the connection fail if the other side's system does not answer for this long, even if nothing is sent.

        Without that, a side that waits for rows would wait for ever when the network between the two is cut.
        """
        if self._socket.family == socket.AF_UNIX:
            return  # There is nothing in between.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        pause_s = max(1, round(within_s / (_PROBES + 1)))
        limits = {
            "TCP_KEEPIDLE": pause_s,
            "TCP_KEEPINTVL": pause_s,
            "TCP_KEEPCNT": _PROBES,
            "TCP_USER_TIMEOUT": round(within_s * 1000),  # For what was sent and is not acknowledged.
        }
        for name, value in limits.items():
            if hasattr(socket, name):  # Not every system has all of them.
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def close(self) -> None:
        """Close the socket. Threads that are sending or receiving wake up."""
        _hang_up(self._socket)
        self._socket.close()


OnConnection = Callable[["Connection"], None]


class Listener:
    """Waits for callers that know the secret.

    Strangers cost little: each has a few seconds for the handshake, and if there are too many of them, the connection
    whose handshake has lasted longest is closed. Callers that know the secret have finished theirs by then.
    """

    def __init__(
        self,
        secret: bytes,
        path: str | None,
        bind_host: str | None,
        *,
        ports: str = "0",
        key: str = "",
        expected: int = 1,
        greeting_s: float = _GREETING_TIMEOUT_S,
    ) -> None:
        """Start to listen.

        :param path: The path of the Unix socket to make; None for no Unix socket.
        :param bind_host: The address to listen on over TCP; None for no TCP.
        :param ports: Ports or ranges of ports, of which the first free one is taken.
        :param key: The configuration key of `ports`, for error messages.
        :param expected: How many callers may call at the same time.
        :param greeting_s: How long a handshake may take.
        """
        self._secret = secret
        self._path = path
        self._sockets: list[socket.socket] = []
        self._greeting_s = greeting_s
        self._most = expected + _MOST_STRANGERS
        self._greeting: dict[socket.socket, None] = {}
        """Callers in the handshake, in the order in which they called."""
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self.port = 0
        if path is not None:
            self._sockets.append(socket.socket(socket.AF_UNIX))
            self._sockets[-1].bind(path)
            os.chmod(path, 0o600)
            self._sockets[-1].listen(128)
        if bind_host is not None:
            try:
                self._sockets.append(listen(bind_host, ports, key, backlog=128))
            except BaseException:
                self.close()
                raise
            self.port = self._sockets[-1].getsockname()[1]

    def serve(self, on_connection: OnConnection) -> None:
        """Accept callers in background threads. `on_connection` gets each one that knows the secret."""
        for each in self._sockets:
            threading.Thread(
                target=self._accept, args=(each, on_connection), daemon=True, name="penstock-listener"
            ).start()

    def _accept(self, listening: socket.socket, on_connection: OnConnection) -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                # The listener was closed, or the process has no file descriptor left for now.
                if self._is_closed.wait(_ACCEPT_PAUSE_S):
                    return
                continue
            with self._lock:
                self._greeting[caller] = None
                if len(self._greeting) > self._most:
                    oldest = next(iter(self._greeting))
                    del self._greeting[oldest]
                    _hang_up(oldest)  # Its thread wakes up and closes the socket.
            # In a thread of its own, so that a silent caller does not block the others.
            threading.Thread(target=self._greet, args=(caller, on_connection), daemon=True).start()

    def _greet(self, caller: socket.socket, on_connection: OnConnection) -> None:
        try:
            _prepare(caller)
            answer_greeting(caller, self._secret, self._greeting_s)
        except (OSError, EOFError, HandshakeError):  # A stranger.
            self._forget(caller)
            caller.close()
            return
        self._forget(caller)
        on_connection(Connection(caller))

    def _forget(self, caller: socket.socket) -> None:
        with self._lock:
            self._greeting.pop(caller, None)

    def close(self) -> None:
        self._is_closed.set()
        for each in self._sockets:
            _hang_up(each)  # Wakes `accept` up.
            each.close()
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)


def _hang_up(endpoint: socket.socket) -> None:
    """End both directions of a socket, which wakes up the threads that wait for it."""
    with contextlib.suppress(OSError):
        endpoint.shutdown(socket.SHUT_RDWR)


def connect(address: Address, secret: bytes) -> Connection:
    """Call a listener, by Unix socket if it is on this machine. Raises OSError or HandshakeError."""
    endpoint = _reach(address)
    try:
        greet(endpoint, secret)
    except EOFError as error:
        endpoint.close()
        raise HandshakeError("the other side hung up before it proved that it belongs to this run") from error
    except BaseException:
        endpoint.close()
        raise
    return Connection(endpoint)


def _reach(address: Address) -> socket.socket:
    if address.path is not None and os.path.exists(address.path):
        endpoint = socket.socket(socket.AF_UNIX)
        try:
            endpoint.connect(address.path)
            return endpoint
        except OSError:
            endpoint.close()
            if not address.port:
                raise
    if not address.port:
        raise FileNotFoundError(f"nothing listens at {address.path}")
    try:
        endpoint = socket.create_connection((address.host.strip("[]"), address.port), timeout=_GREETING_TIMEOUT_S)
    except OSError as error:  # Its message does not name the address.
        raise ConnectionError(f"{address.host}:{address.port} cannot be reached: {error}") from error
    _prepare(endpoint)
    return endpoint


def _prepare(endpoint: socket.socket) -> None:
    if endpoint.family != socket.AF_UNIX:
        endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def greet(endpoint: socket.socket, secret: bytes) -> None:
    """The caller's side of the handshake."""
    deadline = time.monotonic() + _GREETING_TIMEOUT_S
    own = secrets.token_bytes(_NONCE_BYTES)
    endpoint.sendall(_GREETING + own)
    theirs = _exactly(endpoint, _NONCE_BYTES, deadline)
    if not hmac.compare_digest(_exactly(endpoint, _PROOF_BYTES, deadline), _proof(secret, b"listener", own, theirs)):
        raise HandshakeError("the listener does not belong to this run")
    endpoint.sendall(_proof(secret, b"caller", own, theirs))
    endpoint.settimeout(None)


def answer_greeting(endpoint: socket.socket, secret: bytes, within_s: float = _GREETING_TIMEOUT_S) -> None:
    """The listener's side of the handshake."""
    deadline = time.monotonic() + within_s
    if _exactly(endpoint, len(_GREETING), deadline) != _GREETING:
        raise HandshakeError("the caller is not a worker")
    theirs = _exactly(endpoint, _NONCE_BYTES, deadline)
    own = secrets.token_bytes(_NONCE_BYTES)
    endpoint.sendall(own + _proof(secret, b"listener", theirs, own))
    if not hmac.compare_digest(_exactly(endpoint, _PROOF_BYTES, deadline), _proof(secret, b"caller", theirs, own)):
        raise HandshakeError("the caller does not belong to this run")
    endpoint.settimeout(None)


def _proof(secret: bytes, side: bytes, of_caller: bytes, of_listener: bytes) -> bytes:
    return hmac.digest(secret, side + of_caller + of_listener, "sha256")


def _exactly(endpoint: socket.socket, length: int, deadline: float) -> bytes:
    """Read exactly `length` bytes before the deadline, in however many parts they arrive."""
    content = b""
    while len(content) < length:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the other side took too long to prove that it belongs to this run")
        endpoint.settimeout(left)
        part = endpoint.recv(length - len(content))
        if not part:
            raise EOFError
        content += part
    return content
