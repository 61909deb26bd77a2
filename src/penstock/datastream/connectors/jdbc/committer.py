"""The database sink in the driver: commits prepared transactions when their checkpoint is complete."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.jdbc.writer import (
    NoConnectionError,
    PreparedTransaction,
    connect,
    postgres_client,
)
from penstock.datastream.connectors.sink_v2 import CommitRequest, Committer

if TYPE_CHECKING:
    from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions

_log = logging.getLogger(__name__)


class JdbcCommitter(Committer[PreparedTransaction]):
    """Commits prepared transactions; those that are committed already are left alone."""

    def __init__(self, options: JdbcConnectionOptions, max_attempts: int) -> None:
        self._options = options
        self._max_attempts = max_attempts
        self._library = postgres_client()
        self._connection: Any = None

    def commit(self, requests: list[CommitRequest[PreparedTransaction]]) -> None:
        for request in requests:
            try:
                self._commit(request)
            except (self._library.OperationalError, self._library.InterfaceError, NoConnectionError) as failure:
                self.close()
                if request.get_number_of_retries() + 1 >= self._max_attempts:
                    request.signal_failed_with_unknown_reason(failure)
                else:
                    request.retry_later()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _commit(self, request: CommitRequest[PreparedTransaction]) -> None:
        if self._connection is None:
            self._connection = connect(self._options)
        transaction = request.get_committable()
        sql = self._library.sql
        try:
            self._connection.execute(sql.SQL("COMMIT PREPARED {}").format(sql.Literal(transaction.name)))
        except self._library.errors.UndefinedObject:
            self._is_gone(request)

    def _is_gone(self, request: CommitRequest[PreparedTransaction]) -> None:
        """PostgreSQL no longer has the transaction: it was committed before, or rolled back."""
        transaction = request.get_committable()
        status = self._status(transaction.number)
        if status == "aborted":
            request.signal_failed_with_unknown_reason(
                ConnectorError(
                    f"JdbcSink: transaction {transaction.name!r} was rolled back before it was committed, by hand or "
                    f"by another job with the same transaction prefix; its rows are lost"
                )
            )
            return
        if status is None:
            _log.warning(
                "JdbcSink: PostgreSQL has forgotten %s; it ended long ago and is taken as committed", transaction
            )
        request.signal_already_committed()

    def _status(self, number: int) -> str | None:
        """`committed` or `aborted`; None if the transaction is too old."""
        try:
            found: str | None = self._connection.execute("select txid_status(%s::bigint)", [number]).fetchone()[0]
        except self._library.errors.InvalidParameterValue:  # The database was set up again.
            return None
        return found
