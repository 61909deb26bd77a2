"""What to write to Elasticsearch, and how: a sink and its builder, with PyFlink's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NoReturn, TypeVar

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.redaction import redacted_repr, redacted_text
from penstock.datastream.connectors.base import DeliveryGuarantee, Sink, UnavailableConnector
from penstock.datastream.connectors.elasticsearch.emitter import ElasticsearchEmitter
from penstock.datastream.connectors.elasticsearch.writer import BulkWriter
from penstock.datastream.connectors.sink_v2 import WriterInitContext
from penstock.datastream.connectors.support.refused_records import OnRefused

Builder = TypeVar("Builder", bound="ElasticsearchSinkBuilderBase")

_NOT_SET = -1


class FlushBackoffType(Enum):
    """Whether actions that the cluster could not take are sent again, and after which pauses.

    `Elasticsearch7SinkBuilder` has an example.
    """

    CONSTANT = (0,)
    """After the same pause each time."""

    EXPONENTIAL = (1,)
    """After pauses that double."""

    NONE = (2,)
    """Never: the first such answer fails the job."""


@dataclass(frozen=True)
class ElasticsearchSink(Sink):
    """Writes documents in bulk requests; made by `Elasticsearch7SinkBuilder`. Needs `penstock[elasticsearch]`.

    `Elasticsearch7SinkBuilder` has an example.
    """

    hosts: tuple[str, ...]
    emitter: ElasticsearchEmitter
    package: str = "elasticsearch"
    """The client: `elasticsearch` or `opensearchpy`."""
    username: str | None = None
    password: str | None = None
    waits_for_answers: bool = True
    """True for at least once: a checkpoint waits until all actions are answered."""
    max_actions: int = 1000
    max_size_mb: int = _NOT_SET
    interval_ms: int = _NOT_SET
    backoff: FlushBackoffType = FlushBackoffType.NONE
    max_retries: int = 0
    delay_ms: int = 0
    timeout_ms: int = _NOT_SET
    on_refused: OnRefused = OnRefused.FAIL

    __repr__ = redacted_repr

    def create_writer(self, context: WriterInitContext) -> BulkWriter:
        return BulkWriter(self, context)

    def pause_ms(self, attempt: int) -> int | None:
        """How long to wait after an attempt, counted from 0; None to give up."""
        if self.backoff is FlushBackoffType.NONE or attempt >= self.max_retries:
            return None
        return self.delay_ms * (2**attempt if self.backoff is FlushBackoffType.EXPONENTIAL else 1)


class ElasticsearchSinkBuilderBase:
    """Collects how to write. Hosts and an emitter are needed.

    `Elasticsearch7SinkBuilder` has an example.
    """

    _package = "elasticsearch"

    def __init__(self) -> None:
        self._hosts: tuple[str, ...] = ()
        self._path_prefix = ""
        self._emitter: ElasticsearchEmitter | None = None
        self._settings: dict[str, Any] = {}

    def set_emitter(self: Builder, emitter: ElasticsearchEmitter) -> Builder:
        """Choose what turns elements into actions."""
        if not isinstance(emitter, ElasticsearchEmitter):
            raise TypeError(
                f"{self._name}: emitter must be an ElasticsearchEmitter such as "
                f"ElasticsearchEmitter.static_index('users'), got {emitter!r}"
            )
        self._emitter = emitter
        return self

    def set_hosts(self: Builder, hosts: str | Sequence[str]) -> Builder:
        """`host:9200` or `https://host:9200`, one or several nodes of the cluster."""
        given = (hosts,) if isinstance(hosts, str) else tuple(hosts)
        if not given:
            raise ValueError(f"{self._name}: at least one host is needed")
        self._hosts = tuple(host if "://" in host else f"http://{host}" for host in given)
        for host in self._hosts:
            if not host.startswith(("http://", "https://")):
                raise ValueError(f"{self._name}: a host is host:port or a URL of http, got {redacted_text(host)!r}")
        return self

    def set_delivery_guarantee(self: Builder, delivery_guarantee: DeliveryGuarantee) -> Builder:
        """AT_LEAST_ONCE, unless set; with NONE a checkpoint does not wait for what has been collected."""
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise ValueError(
                f"{self._name}: EXACTLY_ONCE is not possible, there are no transactions; AT_LEAST_ONCE with a "
                f"key_field gives the same result, because a document that comes again replaces itself"
            )
        return self._set(waits_for_answers=delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE)

    def set_bulk_flush_max_actions(self: Builder, num_max_actions: int) -> Builder:
        """The most actions of a request; 1000, unless set. -1 for no limit."""
        return self._set(max_actions=self._limit("num_max_actions", num_max_actions))

    def set_bulk_flush_max_size_mb(self: Builder, max_size_mb: int) -> Builder:
        """The largest size of a request: more is sent in several. -1 for the client's limit, 100 MB."""
        return self._set(max_size_mb=self._limit("max_size_mb", max_size_mb))

    def set_bulk_flush_interval(self: Builder, interval_millis: int) -> Builder:
        """How long an action may wait for others. -1, unless set: until there are enough, or a checkpoint is taken."""
        return self._set(interval_ms=self._limit("interval_millis", interval_millis))

    def set_bulk_flush_backoff_strategy(
        self: Builder, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Builder:
        """How often and after which pause actions are sent again when a node is away or busy; never, unless set."""
        if max_retries <= 0 or delay_millis < 0:
            raise ValueError(
                f"{self._name}: max_retries must be positive and delay_millis not negative, "
                f"got {max_retries} and {delay_millis}"
            )
        return self._set(backoff=FlushBackoffType(flush_backoff_type), max_retries=max_retries, delay_ms=delay_millis)

    def set_connection_username(self: Builder, username: str) -> Builder:
        """The user to log in as; none, unless set."""
        return self._set(username=username)

    def set_connection_password(self: Builder, password: str) -> Builder:
        """The password of the user."""
        return self._set(password=password)

    def set_connection_path_prefix(self: Builder, prefix: str) -> Builder:
        """The prefix of every path, if the cluster is behind a proxy."""
        self._path_prefix = "/" + prefix.strip("/")
        return self

    def set_connection_request_timeout(self: Builder, timeout: int) -> Builder:
        """Without effect: a writer has its connection to itself."""
        self._limit("timeout", timeout)
        return self

    def set_connection_timeout(self: Builder, timeout: int) -> Builder:
        """Milliseconds to wait for a connection. The client has one timeout: the longer of this and the socket's."""
        return self._set(timeout_ms=max(self._limit("timeout", timeout), self._settings.get("timeout_ms", _NOT_SET)))

    def set_socket_timeout(self: Builder, timeout: int) -> Builder:
        """Milliseconds to wait for an answer."""
        return self.set_connection_timeout(timeout)

    def set_on_refused(self: Builder, on_refused: OnRefused) -> Builder:
        """What becomes of elements that the emitter or the cluster refuses: they fail the job, unless set."""
        return self._set(on_refused=OnRefused(on_refused))

    def get_http_host_class(self) -> NoReturn:
        """Refused with UnsupportedFeatureError: hosts are strings, not Java objects."""
        raise UnsupportedFeatureError(
            f"{self._name}.get_http_host_class: there is no Java class behind a host; "
            f"set_hosts('localhost:9200') takes strings"
        )

    def build(self) -> ElasticsearchSink:
        """The sink; ValueError if something is missing."""
        if not self._hosts:
            raise ValueError(f"{self._name}: no hosts; call set_hosts('localhost:9200')")
        if self._emitter is None:
            raise ValueError(f"{self._name}: no emitter; call set_emitter(ElasticsearchEmitter.static_index('users'))")
        hosts = tuple(host.rstrip("/") + self._path_prefix for host in self._hosts)
        return replace(ElasticsearchSink(hosts, self._emitter, self._package), **self._settings)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _limit(self, name: str, value: int) -> int:
        if value == 0 or value < _NOT_SET:
            raise ValueError(f"{self._name}: {name} must be positive, or -1 for none, got {value}")
        return value

    def _set(self: Builder, **settings: Any) -> Builder:
        self._settings.update(settings)
        return self


class Elasticsearch7SinkBuilder(ElasticsearchSinkBuilderBase):
    """For Elasticsearch 7 and newer: install the client of your server's major version.

    >>> sink = (
    ...     Elasticsearch7SinkBuilder()
    ...     .set_hosts("localhost:9200")
    ...     .set_emitter(ElasticsearchEmitter.static_index("users", key_field="id"))
    ...     .build()
    ... )
    """


class Elasticsearch6SinkBuilder(metaclass=UnavailableConnector):
    instead = "use Elasticsearch7SinkBuilder, which writes to Elasticsearch 7, 8 and 9"
