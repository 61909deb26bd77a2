"""Sends bulk requests, and repeats what the cluster could not take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package
from penstock.common.redaction import redacted_text
from penstock.datastream.connectors.elasticsearch.emitter import Action
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext
from penstock.datastream.connectors.support.batch_buffer import BatchBuffer
from penstock.datastream.connectors.support.refused_records import RefusedRecords

if TYPE_CHECKING:
    from penstock.datastream.connectors.elasticsearch.sink import ElasticsearchSink

_USER = "ElasticsearchSink"
_EXTRAS = {"elasticsearch": "elasticsearch", "opensearchpy": "opensearch"}
_PASSING = {429, 502, 503, 504}
"""Status codes of a node that may accept the same request a little later."""
_MB = 1024 * 1024
_LARGEST_REQUEST_MB = 100


@dataclass(frozen=True)
class Item:
    """An action, and the element that it comes from."""

    element: Any
    action: Action

    @property
    def document(self) -> tuple[Any, Any] | None:
        """Index and id of the document; None if the cluster chooses the id."""
        key = self.action.get("_id")
        return None if key is None else (self.action.get("_index"), key)


@dataclass
class Outcome:
    """What an attempt leaves to do."""

    again: list[Item]
    """What must be sent again, in order."""
    reason: str = ""
    cause: BaseException | None = None


class BulkWriter(SinkWriter[Any]):
    """Collects actions and sends them together; at least once, all are answered before a checkpoint is complete."""

    def __init__(
        self, sink: ElasticsearchSink, context: WriterInitContext, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._sink = sink
        self._library = optional_package(sink.package, _EXTRAS[sink.package], _USER)
        self._helpers = optional_package(f"{sink.package}.helpers", _EXTRAS[sink.package], _USER)
        self._client = _client(self._library, sink)
        # In Elasticsearch's clients since 8, the errors for an answer and for a lost connection have no common base.
        self._failures = (
            self._library.exceptions.TransportError,
            getattr(self._library, "ApiError", self._library.exceptions.TransportError),
        )
        self._refused = RefusedRecords(sink.on_refused, context.metric_group(), _USER)
        self._pause = pause
        self._buffer: BatchBuffer[Item] = BatchBuffer(
            max(sink.max_actions, 0), max(sink.interval_ms, 0), context.get_processing_time_service(), self._send
        )

    def write(self, element: Any, context: SinkWriterContext) -> None:
        try:
            actions = list(self._sink.emitter.emit(element))
        except Exception as reason:  # Whatever an emitter raises is its way to refuse.
            self._refused.add(element, reason)
            return
        for action in actions:
            self._buffer.add(Item(element, action))

    def flush(self, end_of_input: bool) -> None:
        if self._sink.waits_for_answers or end_of_input:
            self._buffer.write()

    def close(self) -> None:
        self._client.close()

    def _send(self, items: list[Item]) -> None:
        """Send actions until the cluster has taken or refused each of them."""
        attempt = 0
        while items:
            outcome = self._attempt(items)
            items = outcome.again
            if items:
                self._wait_or_fail(attempt, outcome)
                attempt += 1

    def _attempt(self, items: list[Item]) -> Outcome:
        answers: list[dict[str, Any]] = []
        size = max(self._sink.max_size_mb, 0) or _LARGEST_REQUEST_MB
        try:
            for _, answer in self._helpers.streaming_bulk(
                self._client,
                [dict(item.action) for item in items],
                chunk_size=len(items),
                max_chunk_bytes=size * _MB,
                raise_on_error=False,
            ):
                answers.extend(answer.values())
        except self._library.SerializationError as refusal:
            # What is large was sent in several requests: those before are answered, and must not be sent again.
            self._send(self._outcome(items[: len(answers)], answers, "", None).again)
            return self._without_unserializable(items[len(answers) :], refusal)
        except self._failures as failure:
            if not _passes(getattr(failure, "status_code", None)):
                raise ConnectorError(f"{_USER}: {self._hosts} refuses a request: {failure}") from failure
            return self._outcome(items, answers, f"{type(failure).__name__}: {failure}", failure)
        return self._outcome(items, answers, "", None)

    def _outcome(
        self, items: list[Item], answers: list[dict[str, Any]], reason: str, cause: BaseException | None
    ) -> Outcome:
        """Go through the answers. An action without an answer, or with a temporary error, is sent again.

        So are later actions on the same document, so that the last one wins.
        """
        outcome = Outcome([], reason, cause)
        waiting: set[tuple[Any, Any]] = set()
        for item, answer in zip(items, [*answers, *[None] * (len(items) - len(answers))], strict=True):
            error = None if answer is None else answer.get("error")
            is_busy = answer is None or (error is not None and _passes(answer.get("status")))
            if is_busy or item.document in waiting:
                outcome.again.append(item)
                waiting.update(filter(None, [item.document]))
                outcome.reason = outcome.reason or str(error)
            elif error is not None:
                self._refused.add(item.element, self._refusal(item, error))
        return outcome

    def _without_unserializable(self, items: list[Item], refusal: BaseException) -> Outcome:
        if len(items) == 1:
            self._refused.add(items[0].element, self._refusal(items[0], refusal))
            return Outcome([])
        for item in items:  # To find out which one it is, each is sent alone.
            self._send([item])
        return Outcome([])

    def _refusal(self, item: Item, error: object) -> ConnectorError:
        return ConnectorError(f"{_USER}: {self._hosts} refuses {str(dict(item.action))[:300]}: {error}")

    def _wait_or_fail(self, attempt: int, outcome: Outcome) -> None:
        pause_ms = self._sink.pause_ms(attempt)
        if pause_ms is None:
            raise ConnectorError(
                f"{_USER}: {self._hosts} has not taken {len(outcome.again)} actions in {attempt + 1} attempts: "
                f"{outcome.reason}; set_bulk_flush_backoff_strategy(...) says how often they are sent again"
            ) from outcome.cause
        self._pause(pause_ms / 1000)

    @property
    def _hosts(self) -> str:
        return redacted_text(", ".join(self._sink.hosts))


def _passes(status: object) -> bool:
    """True if the same request may succeed later: there was no answer, or the node is busy."""
    return not isinstance(status, int) or status in _PASSING


def _client(library: Any, sink: ElasticsearchSink) -> Any:
    """A client that repeats nothing by itself, so that the order of actions stays known."""
    settings: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False}
    is_newer = sink.package == "elasticsearch" and int(library.__version__[0]) >= 8
    if sink.username is not None:
        settings["basic_auth" if is_newer else "http_auth"] = (sink.username, sink.password or "")
    if sink.timeout_ms > 0:
        settings["request_timeout" if is_newer else "timeout"] = sink.timeout_ms / 1000
    kind = library.Elasticsearch if sink.package == "elasticsearch" else library.OpenSearch
    return kind(list(sink.hosts), **settings)
