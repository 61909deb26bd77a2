"""Kafka's transactions from outside the producer that wrote them: commit, abort, find.

The producer of Kafka's Python client can only end a transaction that it began itself, while it lives. A sink that
writes exactly once must be able to commit a transaction whose producer is gone. So it keeps what identifies the
transaction (transactional id, producer id, epoch) and asks the coordinator itself to end it, as Flink's sink does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.kafka.protocol import BrokerConnection, RequestWriter, ResponseReader, Security

R = TypeVar("R")

# Requests of the protocol, with the version that is used.
_METADATA = (3, 1)
_FIND_COORDINATOR = (10, 1)
_INIT_PRODUCER_ID = (22, 1)
_END_TXN = (26, 1)
_LIST_TRANSACTIONS = (66, 0)

_TRANSACTION_KEY = 1
_OPEN_STATES = ("Ongoing",)

# Kafka's error codes. The first group passes by itself: the coordinator moves, loads, or still ends a transaction.
CONCURRENT_TRANSACTIONS = 51
_PASSING = {
    5: "LEADER_NOT_AVAILABLE",
    7: "REQUEST_TIMED_OUT",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    CONCURRENT_TRANSACTIONS: "CONCURRENT_TRANSACTIONS",
}
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
PRODUCER_FENCED = 90
_NAMES = {
    **_PASSING,
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION",
    INVALID_PRODUCER_EPOCH: "INVALID_PRODUCER_EPOCH",
    INVALID_TXN_STATE: "INVALID_TXN_STATE",
    INVALID_PRODUCER_ID_MAPPING: "INVALID_PRODUCER_ID_MAPPING",
    50: "INVALID_TRANSACTION_TIMEOUT",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    PRODUCER_FENCED: "PRODUCER_FENCED",
}

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True)
class KafkaTransaction:
    """A transaction that is written and waits for its commit."""

    transactional_id: str
    producer_id: int
    epoch: int


class TransactionRefusedError(ConnectorError):
    """The coordinator refused for good. `code` is Kafka's error code."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"Kafka: {what}: error {code} ({_NAMES.get(code, 'see the error codes of its protocol')})")
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt_refusal, (str(self), self.code))


def _rebuilt_refusal(message: str, code: int) -> TransactionRefusedError:
    refusal = TransactionRefusedError.__new__(TransactionRefusedError)
    ConnectorError.__init__(refusal, message)
    refusal.code = code
    return refusal


class _PassingError(Exception):
    """A failure that passes: the request is repeated."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}, {_PASSING[code]}")
        self.is_busy = code == CONCURRENT_TRANSACTIONS
        """True if the right coordinator was asked, which still ends the transaction."""


class KafkaTransactions:
    """Ends and finds transactions. Brokers that cannot be reached are asked again until `timeout_s` have passed."""

    def __init__(
        self,
        settings: Mapping[str, str],
        client_id: str,
        timeout_s: float = 60.0,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._bootstrap = list(_addresses(settings["bootstrap.servers"]))
        self._client_id = client_id
        self._security = Security.of(settings)
        self._timeout_s = timeout_s
        self._pause = pause
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._coordinators: dict[str, tuple[str, int]] = {}

    def commit(self, transaction: KafkaTransaction) -> None:
        """Commit, unless the transaction is committed already. TransactionRefusedError if it is gone."""
        what = f"transaction {transaction.transactional_id!r} cannot be committed"
        request = (
            RequestWriter()
            .string(transaction.transactional_id)
            .int64(transaction.producer_id)
            .int16(transaction.epoch)
            .int8(1)
            .done()
        )
        self._ask_coordinator(transaction.transactional_id, _END_TXN, request, what)

    def abort(self, transactional_id: str) -> None:
        """Abort whatever is open under this id, and lock out the producer that opened it."""
        what = f"transaction {transactional_id!r} cannot be aborted"
        request = RequestWriter().string(transactional_id).int32(60_000).done()
        self._ask_coordinator(transactional_id, _INIT_PRODUCER_ID, request, what)

    def open_ids(self, is_wanted: Callable[[str], bool]) -> list[str]:
        """The ids of the cluster's open transactions for which `is_wanted` is true. Needs Kafka 3.0."""
        return self._patiently("open transactions cannot be listed", lambda: self._list(is_wanted))

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    # --- requests ----------------------------------------------------------------------------------------------------

    def _ask_coordinator(self, transactional_id: str, request: tuple[int, int], body: bytes, what: str) -> None:
        def attempt() -> None:
            answer = self._connection(self._coordinator(transactional_id)).ask(*request, body)
            answer.int32()  # How long the broker throttled the client.
            self._check(answer.int16(), what)

        self._patiently(what, attempt)

    def _coordinator(self, transactional_id: str) -> tuple[str, int]:
        known = self._coordinators.get(transactional_id)
        if known is None:
            body = RequestWriter().string(transactional_id).int8(_TRANSACTION_KEY).done()
            answer = self._any_connection().ask(*_FIND_COORDINATOR, body)
            answer.int32()
            error, _message, _node = answer.int16(), answer.string(), answer.int32()
            self._check(error, f"no coordinator for transaction {transactional_id!r}")
            known = self._coordinators[transactional_id] = (answer.string() or "", answer.int32())
        return known

    def _list(self, is_wanted: Callable[[str], bool]) -> list[str]:
        body = RequestWriter().compact_length(len(_OPEN_STATES))
        for state in _OPEN_STATES:
            body.compact_string(state)
        request = body.compact_length(0).no_tags().done()
        found = []
        for broker in self._brokers():
            answer = self._connection(broker).ask(*_LIST_TRANSACTIONS, request, is_flexible=True)
            answer.int32()
            self._check(answer.int16(), f"open transactions of {broker[0]}:{broker[1]} cannot be listed")
            found += [each for each in _listed(answer) if is_wanted(each)]
        return found

    def _brokers(self) -> list[tuple[str, int]]:
        answer = self._any_connection().ask(*_METADATA, RequestWriter().int32(0).done())
        brokers = []
        for _ in range(answer.int32()):
            answer.int32()
            brokers.append((answer.string() or "", answer.int32()))
            answer.string()
        return brokers

    # --- connections -------------------------------------------------------------------------------------------------

    def _patiently(self, what: str, attempt: Callable[[], R]) -> R:
        until = time.monotonic() + self._timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return attempt()
            except (_PassingError, OSError) as failure:
                if not (isinstance(failure, _PassingError) and failure.is_busy):
                    self.close()
                    self._coordinators.clear()
                if time.monotonic() + pause_s > until:
                    raise ConnectorError(
                        f"Kafka: {what}, tried for {self._timeout_s:g} s: {failure}; are the brokers up?"
                    ) from failure
            self._pause(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _any_connection(self) -> BrokerConnection:
        failures = []
        for address in self._bootstrap:
            try:
                return self._connection(address)
            except OSError as failure:
                failures.append(f"{address[0]}:{address[1]}: {failure}")
        raise ConnectionError("; ".join(failures))

    def _connection(self, address: tuple[str, int]) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = BrokerConnection(*address, self._client_id, self._security, self._timeout_s)
            self._connections[address] = connection
        return connection

    def _check(self, error: int, what: str) -> None:
        if error in _PASSING:
            raise _PassingError(error)
        if error:
            raise TransactionRefusedError(what, error)


def _listed(answer: ResponseReader) -> Iterator[str]:
    for _ in range(answer.compact_length()):
        answer.compact_string()  # A state that the broker does not know.
    for _ in range(answer.compact_length()):
        transactional_id = answer.compact_string()
        answer.int64()
        answer.compact_string()
        answer.skip_tags()
        yield transactional_id


def _addresses(servers: str) -> Iterator[tuple[str, int]]:
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"Kafka: bootstrap.servers must be 'host:port,host:port', got {servers!r}")
        yield host.strip("[]"), int(port)
