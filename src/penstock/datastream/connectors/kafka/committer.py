"""The Kafka sink in the driver: commits transactions when their checkpoint is complete."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.kafka.settings import producer_settings
from penstock.datastream.connectors.kafka.transactions import (
    INVALID_PRODUCER_ID_MAPPING,
    KafkaTransaction,
    KafkaTransactions,
    TransactionRefusedError,
)
from penstock.datastream.connectors.sink_v2 import CommitRequest, Committer

_log = logging.getLogger(__name__)


class KafkaCommitter(Committer[KafkaTransaction]):
    """Commits transactions; those that are committed already are left alone.

    A transaction that timed out before is lost, and with it the records of a checkpoint: the job fails, unless
    `ignores_lost` says to continue.
    """

    def __init__(self, properties: Mapping[str, str], ignores_lost: bool) -> None:
        self._transactions = KafkaTransactions(producer_settings(properties), "penstock-committer")
        self._ignores_lost = ignores_lost

    def commit(self, requests: list[CommitRequest[KafkaTransaction]]) -> None:
        ordered = [request for request in requests if self._end(request)]
        for request in ordered:
            # The coordinator writes the ends after it has promised them; asked again, it answers when they are written.
            self._transactions.commit(request.get_committable())

    def close(self) -> None:
        self._transactions.close()

    def _end(self, request: CommitRequest[KafkaTransaction]) -> bool:
        """True if the transaction's commit has begun."""
        transaction = request.get_committable()
        try:
            self._transactions.commit(transaction)
        except TransactionRefusedError as refusal:
            self._refused(request, refusal)
            return False
        return True

    def _refused(self, request: CommitRequest[KafkaTransaction], refusal: TransactionRefusedError) -> None:
        transaction = request.get_committable()
        if refusal.code == INVALID_PRODUCER_ID_MAPPING:
            # Kafka forgets ids a week after their last transaction ended, never while one is open.
            _log.warning("KafkaSink: Kafka has forgotten %s; it ended long ago and is taken as committed", transaction)
            request.signal_already_committed()
            return
        lost = ConnectorError(
            f"{refusal}; it timed out before it was committed, or another job uses the same transactional id prefix. "
            f"Its records are lost. Raise transaction.timeout.ms above the longest time the job may be down"
        )
        lost.__cause__ = refusal
        if self._ignores_lost:
            request.signal_failed_with_known_reason(lost)
        else:
            request.signal_failed_with_unknown_reason(lost)
