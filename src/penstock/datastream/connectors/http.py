"""Writing to HTTP services."""

from __future__ import annotations

import base64
import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.common.exceptions import ConnectorError
from penstock.common.redaction import redacted_repr, redacted_text
from penstock.common.serialization import SerializationSchema
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext
from penstock.datastream.connectors.support.batch_buffer import BatchBuffer
from penstock.datastream.connectors.support.refused_records import OnRefused, RefusedRecords

__all__ = ["HttpBody", "HttpSink", "HttpSinkBuilder"]

_USER = "HttpSink"
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes of a service that may accept the same request a little later."""
_ABOUT_ELEMENTS = {400, 406, 409, 412, 413, 415, 422}
"""Status codes that refuse what was sent. Others would be the same for any element."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0

Item = tuple[Any, bytes]
"""An element, and its bytes."""


class HttpBody(Enum):
    """How the elements of a batch become one body.

    `HttpSink` has an example.
    """

    JSON_ARRAY = "json array"
    """`[...,...]`; every element must be a JSON text."""

    LINES = "lines"
    """One element on each line, as in NDJSON."""

    SINGLE = "single"
    """A request for each element."""


_CONTENT_TYPES = {
    HttpBody.JSON_ARRAY: "application/json",
    HttpBody.LINES: "application/x-ndjson",
    HttpBody.SINGLE: "application/octet-stream",
}


@dataclass(frozen=True)
class HttpSink(Sink):
    """Sends elements to an HTTP service, at least once; made by `HttpSink.builder()`.

    >>> from penstock.common import SimpleStringSchema
    >>> lines = (
    ...     HttpSink.builder()
    ...     .set_url("https://localhost/events")
    ...     .set_serializer(SimpleStringSchema())
    ...     .set_body(HttpBody.LINES)
    ...     .build()
    ... )
    """

    url: str
    serializer: SerializationSchema
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    body: HttpBody = HttpBody.JSON_ARRAY
    batch_size: int = 100
    batch_interval_ms: int = 1000
    max_retries: int = 5
    timeout_ms: int = 30_000
    on_refused: OnRefused = OnRefused.FAIL

    __repr__ = redacted_repr

    @staticmethod
    def builder() -> HttpSinkBuilder:
        """Begin to describe a sink."""
        return HttpSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> HttpWriter:
        return HttpWriter(self, context)


class HttpSinkBuilder:
    """Collects how to reach the service. A URL and a serializer are needed.

    `HttpSink` has an example.
    """

    def __init__(self) -> None:
        self._url: str | None = None
        self._serializer: SerializationSchema | None = None
        self._headers: dict[str, str] = {}
        self._settings: dict[str, Any] = {}

    def set_url(self, url: str) -> HttpSinkBuilder:
        """Where requests go: a URL of http or https."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"HttpSink: the URL must begin with http:// or https:// and a host, got {redacted_text(url)!r}"
            )
        self._url = url
        return self

    def set_serializer(self, serializer: SerializationSchema) -> HttpSinkBuilder:
        """Turn elements into bytes; an element for which it returns None is left out."""
        if not isinstance(serializer, SerializationSchema):
            raise TypeError(f"HttpSink: serializer must be a SerializationSchema, got {serializer!r}")
        self._serializer = serializer
        return self

    def set_method(self, method: str) -> HttpSinkBuilder:
        """POST, unless set."""
        self._settings["method"] = method.upper()
        return self

    def set_header(self, name: str, value: str) -> HttpSinkBuilder:
        """Send a header with each request, for instance `Authorization`."""
        self._headers[name] = value
        return self

    def set_body(self, body: HttpBody) -> HttpSinkBuilder:
        """How a batch becomes a body; a JSON array, unless set."""
        self._settings["body"] = HttpBody(body)
        return self

    def set_batch_size(self, batch_size: int) -> HttpSinkBuilder:
        """How many elements go into a request; 100, unless set."""
        return self._set(batch_size=batch_size)

    def set_batch_interval_ms(self, batch_interval_ms: int) -> HttpSinkBuilder:
        """How long an element may wait for others; a second, unless set. A checkpoint waits for all."""
        return self._set(batch_interval_ms=batch_interval_ms)

    def set_max_retries(self, max_retries: int) -> HttpSinkBuilder:
        """How often a request without an answer, or with 408, 425, 429 or 5xx, is sent again; 5 times, unless set."""
        return self._set(max_retries=max_retries)

    def set_timeout_ms(self, timeout_ms: int) -> HttpSinkBuilder:
        """How long to wait for an answer; 30 seconds, unless set."""
        if timeout_ms == 0:
            raise ValueError("HttpSink: timeout_ms must be positive, got 0: a service needs some time to answer")
        return self._set(timeout_ms=timeout_ms)

    def set_on_refused(self, on_refused: OnRefused) -> HttpSinkBuilder:
        """What becomes of elements that the serializer or the service refuses: they fail the job, unless set."""
        self._settings["on_refused"] = OnRefused(on_refused)
        return self

    def build(self) -> HttpSink:
        """The sink; ValueError if something is missing."""
        if self._url is None:
            raise ValueError("HttpSink: no URL; call set_url('https://host/path')")
        if self._serializer is None:
            raise ValueError("HttpSink: no serializer; call set_serializer(...), for instance with a JSON schema")
        return replace(HttpSink(self._url, self._serializer, headers=self._headers), **self._settings)

    def _set(self, **settings: int) -> HttpSinkBuilder:
        for name, value in settings.items():
            if value < 0:
                raise ValueError(f"HttpSink: {name} must not be negative, got {value}")
        self._settings.update(settings)
        return self


@dataclass(frozen=True)
class _Answer:
    status: int
    text: str
    retry_after: str | None = None

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_about_elements(self) -> bool:
        """False if any request would be answered like this: the password or the address is wrong, for instance."""
        return self.status in _ABOUT_ELEMENTS

    @property
    def passes(self) -> bool:
        return self.status in _PASSING


class HttpConnection:
    """One connection to a service, kept open as long as both sides want."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._parts: SplitResult = urlsplit(url)
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        """Send a request; raises OSError or HTTPException if there is no answer."""
        parts = self._parts
        if self._connection is None:
            assert parts.hostname is not None
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(parts.hostname, parts.port, timeout=self._timeout_s)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return _Answer(response.status, text, response.getheader("Retry-After"))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class HttpWriter(SinkWriter[Any]):
    """Sends batches; all have been answered before a checkpoint is complete."""

    def __init__(
        self, sink: HttpSink, context: WriterInitContext, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._sink = sink
        given = {name.lower() for name in sink.headers}
        own = {"Content-Type": _CONTENT_TYPES[sink.body], **_login_of(sink.url)}
        self._headers = {**{name: value for name, value in own.items() if name.lower() not in given}, **sink.headers}
        self._connection = HttpConnection(sink.url, sink.timeout_ms / 1000)
        self._refused = RefusedRecords(sink.on_refused, context.metric_group(), _USER)
        self._pause = pause
        size = 1 if sink.body is HttpBody.SINGLE else sink.batch_size
        times = context.get_processing_time_service()
        self._buffer: BatchBuffer[Item] = BatchBuffer(size, sink.batch_interval_ms, times, self._send)

    def write(self, element: Any, context: SinkWriterContext) -> None:
        try:
            content = self._sink.serializer.serialize(element)
        except Exception as reason:  # Whatever a schema raises is its way to refuse.
            self._refused.add(element, reason)
            return
        if content is None:
            return
        if self._sink.body is HttpBody.LINES and b"\n" in content:
            self._refused.add(element, ValueError(f"{_USER}: {content!r} has a line break, so it would be two lines"))
            return
        self._buffer.add((element, content))

    def flush(self, end_of_input: bool) -> None:
        self._buffer.write()

    def close(self) -> None:
        self._connection.close()

    def _send(self, items: list[Item]) -> None:
        answer = self._answer(self._body_of(items))
        if answer.is_good:
            return
        excerpt = answer.text[:200].strip()
        url = redacted_text(self._sink.url)
        refusal = ConnectorError(f"{_USER}: {url} answers {answer.status} to {len(items)} elements: {excerpt}")
        if not answer.is_about_elements:
            raise refusal
        if len(items) > 1 and self._sink.on_refused is OnRefused.SKIP:
            for item in items:  # To find out which one it is, each is sent alone.
                self._send([item])
            return
        self._refused.add(items[0][0], refusal)

    def _body_of(self, items: list[Item]) -> bytes:
        contents = [content for _, content in items]
        match self._sink.body:
            case HttpBody.JSON_ARRAY:
                return b"[" + b",".join(contents) + b"]"
            case HttpBody.LINES:
                return b"".join(content + b"\n" for content in contents)
        return contents[0]

    def _answer(self, body: bytes) -> _Answer:
        """The service's final answer: the request is repeated while the service is away or busy."""
        sink = self._sink
        for attempt in range(sink.max_retries + 1):
            pause_s = min(_FIRST_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)
            try:
                answer = self._connection.ask(sink.method, body, self._headers)
            except (OSError, http.client.HTTPException) as failure:
                if attempt == sink.max_retries:
                    raise ConnectorError(
                        f"{_USER}: no answer from {redacted_text(sink.url)} in {attempt + 1} attempts: "
                        f"{type(failure).__name__}: {failure}"
                    ) from failure
            else:
                if not answer.passes:
                    return answer
                if attempt == sink.max_retries:
                    raise ConnectorError(
                        f"{_USER}: {redacted_text(sink.url)} answered {answer.status} in the last of {attempt + 1} "
                        f"attempts: {answer.text[:200].strip()}"
                    )
                pause_s = max(pause_s, _seconds(answer.retry_after))
            self._pause(pause_s)
        raise AssertionError("the last attempt returns or raises")


def _login_of(url: str) -> dict[str, str]:
    """The header for the user and password that a URL may name, as browsers and curl send it."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _seconds(retry_after: str | None) -> float:
    """What a Retry-After header asks for; dates are ignored."""
    return min(float(retry_after), _LONGEST_PAUSE_S) if retry_after is not None and retry_after.isdigit() else 0.0
