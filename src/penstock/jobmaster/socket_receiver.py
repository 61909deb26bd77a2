"""Reads text from a socket into a spool."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.graph.descriptions import SocketSourceDescription
from penstock.jobmaster.spool import Spool

_CONNECT_TIMEOUT_S = 10
_READ_BYTES = 64 * 1024
_POLL_S = 0.2


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
    """A thread that connects, reads and spools until the stream ends, retries are used up, or it is stopped."""

    def __init__(self, description: SocketSourceDescription, spool: Spool, on_change: Callable[[], None]) -> None:
        self._description = description
        self._spool = spool
        self._on_change = on_change
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.has_ended = False
        self.failure: JobExecutionError | None = None

    def start(self) -> None:
        """Connect and read in the background: a job that waits for its server can be cancelled."""
        self._thread = threading.Thread(target=self._run, name="socket-receiver", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Connect again after a failure, because the job starts again."""
        if self.failure is not None:
            self.failure = None
            self.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        attempts = 0
        failure: JobExecutionError | None = None
        try:
            connection = self._connect(attempts_left=self._description.max_retries)
            while connection is not None:
                self._read_to_end(connection)
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
        # The failure last: once it is seen, another thread may take this one's place.
        self.has_ended = failure is None
        self.failure = failure
        self._on_change()

    def _read_to_end(self, connection: socket.socket) -> None:
        splitter = RecordSplitter(self._description.delimiter)
        connection.settimeout(_POLL_S)
        with connection:
            while not self._stopped.is_set():
                try:
                    data = connection.recv(_READ_BYTES)
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
                if not data:
                    break
                self._keep(splitter.feed(data))
        if not self._stopped.is_set():
            self._keep(splitter.end())

    def _keep(self, records: list[bytes]) -> None:
        if records:
            self._spool.append(records)
            self._on_change()

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
