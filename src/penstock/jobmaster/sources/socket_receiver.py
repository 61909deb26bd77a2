"""Reads text from a socket into a spool."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.graph.descriptions import SocketSourceDescription
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.runtime.state.operator import Saved

_CONNECT_TIMEOUT_S = 10
_READ_BYTES = 64 * 1024
_GATHERS_S = 0.002
"""How long bytes wait in the connection while what came before has not been taken yet."""


class RecordSplitter:
    """Cuts a byte stream at a delimiter. A trailing carriage return is dropped only when the delimiter is newline."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter.encode()
        self._drops_return = delimiter == "\n"
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        *records, self._rest = (self._rest + data).split(self._delimiter)
        if self._drops_return:
            return [record[:-1] if record.endswith(b"\r") else record for record in records]
        return records

    def end(self) -> list[bytes]:
        """The last record, if it was not terminated."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


class SocketReceiver:
    """A thread that connects, reads and spools until the stream ends, retries are used up, or it is stopped.

    It reads no more than the spool has space for, so that the sender must wait for the job.
    """

    is_open = True

    def __init__(
        self, description: SocketSourceDescription, spool: ElementSpool, on_change: Callable[[], None]
    ) -> None:
        self._description = description
        self._spool = spool
        self._on_change = on_change
        self._stopped = threading.Event()
        self._reading = threading.RLock()
        """Held while bytes are taken from the connection and spooled."""
        self._is_held = False
        self._connected: tuple[socket.socket, RecordSplitter] | None = None
        self._alarm: tuple[socket.socket, socket.socket] | None = None
        """A byte into the first ends the waiting for the connection."""
        self._thread = threading.Thread(target=self._run, name="socket-receiver", daemon=True)
        self.has_ended = False
        self.failure: JobExecutionError | None = None

    def start(self) -> None:
        """Connect and read in the background: a job that waits for its server can be cancelled."""
        self._alarm = socket.socketpair()
        self._thread.start()

    def locked(self) -> AbstractContextManager[bool]:
        return self._reading

    def catch_up(self) -> None:
        with self._reading:
            if self._connected is not None and not self._is_held and self._spool.has_space:
                self._take(*self._connected)  # The thread notices its end.

    def hold(self) -> None:
        """Read nothing more, until `let_go` is called by the same thread."""
        if not self._is_held:
            self._reading.acquire()
            self._is_held = True

    def let_go(self) -> None:
        if self._is_held:
            self._is_held = False
            self._reading.release()

    def snapshot(self, checkpoint_id: int) -> Saved:
        return {}  # A connection cannot be taken up again.

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        """The other end is not notified."""

    def cancel(self) -> None:
        self._stopped.set()
        if self._alarm is not None:
            with contextlib.suppress(OSError):  # The thread has ended.
                self._alarm[0].send(b"!")
        self.let_go()

    def join(self, timeout_ms: int) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_ms / 1000)

    def _run(self) -> None:
        alarm = self._alarm
        assert alarm is not None
        attempts = 0
        failure: JobExecutionError | None = None
        try:
            connection = self._connect(attempts_left=self._description.max_retries)
            while connection is not None:
                self._read_to_end(connection, alarm[1])
                # The end of the stream counts as a lost connection, as in Flink.
                attempts += 1
                limit = self._description.max_retries
                if self._stopped.is_set() or (limit >= 0 and attempts > limit) or self._wait():
                    break
                connection = self._connect(attempts_left=limit if limit < 0 else limit - attempts)
        except JobExecutionError as error:
            failure = error
        except Exception as error:  # A receiver that dies silently would stall the job
            failure = JobExecutionError(f"{self._name()}: {type(error).__name__}: {error}")
        finally:
            for each in alarm:
                each.close()
        # The failure last: once it is seen, another thread may take this one's place.
        self.has_ended = failure is None
        self.failure = failure
        self._on_change()

    def _read_to_end(self, connection: socket.socket, alarm: socket.socket) -> None:
        splitter = RecordSplitter(self._description.delimiter)
        connection.setblocking(False)
        with connection, selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(alarm, selectors.EVENT_READ)
            self._connected = connection, splitter
            try:
                while not self._stopped.is_set() and self._read(selector, connection, splitter):
                    pass
            finally:
                with self._reading:
                    self._connected = None

    def _read(self, selector: selectors.BaseSelector, connection: socket.socket, splitter: RecordSplitter) -> bool:
        """Wait until something comes, and take it; False at the end of the stream."""
        self._spool.wait_for_space()
        selector.select()
        with self._reading:  # What was taken is in the spool before the job can stop.
            if self._stopped.is_set():
                return False
            had_waiting = self._spool.has_waiting
            taken = self._take(connection, splitter)
            if taken == 0:
                self._keep(splitter.end())
                return False
        if had_waiting and taken is not None and taken < _READ_BYTES:
            # Record by record this would be much work; the thread that takes what waits takes the rest, too.
            self._spool.wait_until_taken(_GATHERS_S)
        return True

    def _take(self, connection: socket.socket, splitter: RecordSplitter) -> int | None:
        """Spool what has arrived; how many bytes that was: 0 at the end of the stream, None if there was nothing."""
        try:
            data = connection.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except ConnectionError:
            return 0
        self._keep(splitter.feed(data))
        return len(data)

    def _keep(self, records: list[bytes]) -> None:
        if records:
            self._spool.add_all([record.decode("utf-8", "replace") for record in records])

    def _connect(self, attempts_left: int) -> socket.socket | None:
        """None if stopped while waiting."""
        where = (self._description.host, self._description.port)
        while True:
            try:
                return socket.create_connection(where, timeout=_CONNECT_TIMEOUT_S)
            except OSError as error:
                if attempts_left == 0:
                    raise JobExecutionError(self._refused(error)) from error
            attempts_left -= 1
            if self._wait():
                return None

    def _wait(self) -> bool:
        """Wait before the next attempt; True if stopped meanwhile."""
        return self._stopped.wait(self._description.retry_delay_ms / 1000)

    def _name(self) -> str:
        return f"socket source {self._description.host}:{self._description.port}"

    def _refused(self, error: Any) -> str:
        reason = error.strerror or str(error)
        return (
            f"{self._name()}: cannot connect ({reason}); start a server there first, for example "
            f"`nc -lk {self._description.port}`, or give socket_text_stream a max_retry"
        )
