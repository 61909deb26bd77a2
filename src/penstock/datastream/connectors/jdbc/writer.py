"""The database sink in a subtask: rows in batches, at least once, or in transactions that the driver commits."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package
from penstock.common.redaction import redacted_text
from penstock.common.time import Instant
from penstock.datastream.connectors.jdbc.databases import database_of
from penstock.datastream.connectors.jdbc.statements import Statement
from penstock.datastream.connectors.sink_v2 import (
    CommittingSinkWriter,
    SinkWriter,
    SinkWriterContext,
    WriterInitContext,
)
from penstock.datastream.connectors.support.batch_buffer import BatchBuffer
from penstock.datastream.connectors.support.refused_records import RefusedRecords

if TYPE_CHECKING:
    from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions, JdbcExactlyOnceSink, JdbcSink

_USER = "JdbcSink"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PAUSE_S = 1.0
"""Flink's pause before the second attempt to run a batch; twice as long before the third."""

_log = logging.getLogger(__name__)

Values = Sequence[Any]


def postgres_client() -> Any:
    """The package `psycopg`."""
    return optional_package("psycopg", "postgres", _USER)


class NoConnectionError(ConnectorError):
    """The server cannot be reached, or refuses the user."""


def connect(options: JdbcConnectionOptions) -> Any:
    """A connection to the database that the options name."""
    database = database_of(options.db_url)
    try:
        return database.connect(options)
    except database.library().Error as failure:
        url = redacted_text(options.db_url)
        raise NoConnectionError(f"{_USER}: no connection to {url}: {str(failure).strip()}") from failure


def _buffer(
    sink: JdbcSink, context: WriterInitContext, write_rows: Callable[[list[Values]], None]
) -> BatchBuffer[Values]:
    options = sink.execution_options
    return BatchBuffer(options.batch_size, options.batch_interval_ms, context.get_processing_time_service(), write_rows)


def values_of(element: Any, fields: int) -> Values:
    """The fields of a row, in the types that the client knows."""
    try:
        values = list(element)
    except TypeError:
        values = None
    if values is None or isinstance(element, (str, bytes)) or len(values) != fields:
        raise ValueError(
            f"{_USER}: type_info has {fields} fields, so elements must be rows of {fields}, got {element!r}"
        )
    return [_as_datetime(value) if isinstance(value, Instant) else value for value in values]


def _as_datetime(instant: Instant) -> datetime:
    micros, rest = divmod(instant.nanos, 1000)
    if rest:
        raise ValueError(f"{_USER}: {instant!r} has nanoseconds, but databases keep microseconds; round it before")
    return _EPOCH + timedelta(seconds=instant.seconds, microseconds=micros)


class JdbcWriter(SinkWriter[Any]):
    """Runs the statement for each row, a batch of rows in one transaction; all before a checkpoint is complete."""

    def __init__(
        self, sink: JdbcSink, context: WriterInitContext, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._database = database_of(sink.connection_options.db_url)
        self._library = self._database.library()
        self._options = sink.connection_options
        self._statement = self._database.statement(sink.sql)
        self._max_retries = sink.execution_options.max_retries
        self._fields = sink.arity
        self._refused = RefusedRecords(sink.on_refused, context.metric_group(), _USER)
        self._skips = sink.skips_refused
        self._buffer = _buffer(sink, context, self._write_rows)
        self._pause = pause
        self._connection: Any = None

    def write(self, element: Any, context: SinkWriterContext) -> None:
        try:
            row = values_of(element, self._fields)
        except ValueError as reason:
            self._refused.add(element, reason)
        else:
            self._buffer.add(row)

    def flush(self, end_of_input: bool) -> None:
        self._buffer.write()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _write_rows(self, rows: list[Values]) -> None:
        left = deque(rows)
        for attempt in range(self._max_retries + 1):
            try:
                self._attempt(left)
                return
            except (self._library.OperationalError, self._library.InterfaceError, NoConnectionError) as failure:
                # The connection is lost, the server restarts, others hold locks: problems that pass by themselves.
                self.close()
                if attempt == self._max_retries:
                    raise not_written(len(left), failure, f" in {attempt + 1} attempts") from failure
                _log.warning("%s: attempt %d to write %d rows failed: %s", _USER, attempt + 1, len(left), failure)
            self._pause(_PAUSE_S * (attempt + 1))

    def _attempt(self, left: deque[Values]) -> None:
        """Write all rows. Rows that were written or refused one by one are removed, for another attempt."""
        if self._connection is None:
            self._connection = connect(self._options)
        try:
            self._run(list(left))
        except (self._library.OperationalError, self._library.InterfaceError):
            raise
        except self._library.Error as refusal:
            if not self._skips or not self._is_about_a_row(refusal):
                raise not_written(len(left), refusal) from refusal
            while left:
                self._run_alone(left[0])
                left.popleft()

    def _run(self, rows: list[Values]) -> None:
        self._database.run(self._connection, self._statement, rows)

    def _run_alone(self, row: Values) -> None:
        try:
            self._run([row])
        except self._library.Error as refusal:
            if not self._is_about_a_row(refusal):
                raise
            self._refused.add(row, refusal)

    def _is_about_a_row(self, refusal: BaseException) -> bool:
        return isinstance(refusal, (self._library.DataError, self._library.IntegrityError))


@dataclass(frozen=True)
class PreparedTransaction:
    """A transaction that PostgreSQL keeps until it is committed."""

    name: str
    number: int
    """PostgreSQL's own number, by which it still knows afterwards whether the transaction was committed."""


class JdbcTransactionWriter(CommittingSinkWriter[Any, PreparedTransaction]):
    """Runs the statement for each row in a transaction that is prepared when a checkpoint is taken.

    Transactions are named `<prefix>-<subtask>-<unique>`.
    """

    def __init__(self, sink: JdbcExactlyOnceSink, context: WriterInitContext) -> None:
        self._library = postgres_client()
        self._statement = Statement.of(sink.sql).text
        self._fields = sink.arity
        self._prefix = sink.exactly_once_options.transaction_prefix
        self._subtask = context.get_task_info().index_of_this_subtask
        self._parallelism = context.get_task_info().number_of_parallel_subtasks
        self._buffer = _buffer(sink, context, self._write_rows)
        self._is_open = False
        self._connection = connect(sink.connection_options)
        try:
            self._check_server()
            self._connection.execute(f"set lock_timeout = {sink.exactly_once_options.lock_timeout_ms}")
            self._roll_back_leftovers()
        except BaseException:
            self.close()
            raise

    def write(self, element: Any, context: SinkWriterContext) -> None:
        self._buffer.add(values_of(element, self._fields))

    def flush(self, end_of_input: bool) -> None:
        self._buffer.write()

    def prepare_commit(self) -> list[PreparedTransaction]:
        if not self._is_open:
            return []
        name = f"{self._prefix}-{self._subtask}-{uuid.uuid4().hex}"
        try:
            [number] = self._connection.execute("select txid_current()").fetchone()
            self._connection.execute(_with_name(self._library, "PREPARE TRANSACTION {}", name))
        except self._library.Error as failure:
            raise ConnectorError(f"{_USER}: transaction {name!r} was not prepared: {failure}") from failure
        self._is_open = False
        return [PreparedTransaction(name, number)]

    def close(self) -> None:
        """A transaction that is not prepared ends with its connection."""
        self._connection.close()

    def _write_rows(self, rows: list[Values]) -> None:
        try:
            if not self._is_open:
                self._connection.execute("BEGIN")
                self._is_open = True
            with self._connection.cursor() as cursor:
                cursor.executemany(self._statement, rows)
        except self._library.errors.LockNotAvailable as failure:
            raise ConnectorError(
                f"{_USER}: waited too long for a row that another transaction has locked: {failure}. Rows with the "
                f"same key must be written by the same subtask: put key_by(...) on the table's key in front of the sink"
            ) from failure
        except self._library.Error as failure:
            raise not_written(len(rows), failure) from failure

    def _check_server(self) -> None:
        [most] = self._connection.execute("show max_prepared_transactions").fetchone()
        if int(most) == 0:
            raise ConnectorError(
                f"{_USER}: the server takes no prepared transactions, which exactly once needs; set "
                f"max_prepared_transactions in postgresql.conf to twice the sinks' parallelism or more, and restart it"
            )

    def _roll_back_leftovers(self) -> None:
        """Roll back what earlier runs prepared for checkpoints that were never complete.

        What belongs to the restored checkpoint was committed before this writer was made.
        """
        found = self._connection.execute("select gid from pg_prepared_xacts where database = current_database()")
        for (name,) in found.fetchall():
            if self._is_leftover(name):
                _log.info("%s: rolls back transaction %r, which an earlier run left", _USER, name)
                self._connection.execute(_with_name(self._library, "ROLLBACK PREPARED {}", name))

    def _is_leftover(self, name: str) -> bool:
        match = re.fullmatch(r"(.*)-(\d+)-[0-9a-f]{32}", name)
        return match is not None and match[1] == self._prefix and int(match[2]) % self._parallelism == self._subtask


def _with_name(library: Any, statement: str, name: str) -> Any:
    return library.sql.SQL(statement).format(library.sql.Literal(name))


def not_written(rows: int, failure: BaseException, after: str = "") -> ConnectorError:
    return ConnectorError(f"{_USER}: {rows} rows were not written{after}: {type(failure).__name__}: {failure}")
