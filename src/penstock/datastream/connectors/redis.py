"""Writing to Redis."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package
from penstock.common.redaction import redacted_repr, redacted_text
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext
from penstock.datastream.connectors.support.batch_buffer import BatchBuffer
from penstock.datastream.connectors.support.refused_records import OnRefused, RefusedRecords

__all__ = ["RedisMapper", "RedisSink", "RedisSinkBuilder"]

_USER = "RedisSink"
_ADDED_BEFORE = "ID specified in XADD is equal or smaller"
_WRONG_TYPE = "WRONGTYPE"
_CODE = re.compile(r"[A-Z][A-Z_]+$")
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0

Command = tuple[Any, ...]
"""Such as ("HSET", "totals", "fr", 3)."""
Name = str | Callable[[Any], str]


class RedisMapper(ABC):
    """Turns an element into commands. The ready-made mappers take plain functions of the element.

    A name may be a string, or a function that returns one for each element.

    >>> totals = RedisMapper.string(lambda order: order["id"], lambda order: order["total"])
    >>> list(totals.commands({"id": "a", "total": 3}))
    [('SET', 'a', 3)]
    """

    @abstractmethod
    def commands(self, element: Any) -> Iterable[Command]:
        """The commands for an element, such as ("SET", "key", "value")."""

    @staticmethod
    def string(key: Name, value: Callable[[Any], Any], expires_after_ms: int | None = None) -> RedisMapper:
        """SET: a value for each key. The same element twice is the same as once."""
        ttl = () if expires_after_ms is None else ("PX", expires_after_ms)
        return _Mapped(lambda element: ("SET", _named(key, element), value(element), *ttl))

    @staticmethod
    def hash(name: Name, field: Callable[[Any], Any], value: Callable[[Any], Any]) -> RedisMapper:
        """HSET: a field of a hash. The same element twice is the same as once."""
        return _Mapped(lambda element: ("HSET", _named(name, element), field(element), value(element)))

    @staticmethod
    def list(name: Name, value: Callable[[Any], Any]) -> RedisMapper:
        """RPUSH: the end of a list. After a failure elements may come twice."""
        return _Mapped(lambda element: ("RPUSH", _named(name, element), value(element)))

    @staticmethod
    def set(name: Name, member: Callable[[Any], Any]) -> RedisMapper:
        """SADD: a member of a set. The same element twice is the same as once."""
        return _Mapped(lambda element: ("SADD", _named(name, element), member(element)))

    @staticmethod
    def sorted_set(name: Name, member: Callable[[Any], Any], score: Callable[[Any], float]) -> RedisMapper:
        """ZADD: a member of a sorted set. The same element twice is the same as once."""
        return _Mapped(lambda element: ("ZADD", _named(name, element), score(element), member(element)))

    @staticmethod
    def stream(
        name: Name, fields: Callable[[Any], Mapping[str, Any]], entry_id: Callable[[Any], str] | None = None
    ) -> RedisMapper:
        """XADD: an entry of a stream.

        With an `entry_id` of your own that grows from element to element, an existing entry is not added again. Without
        one, Redis makes ids, and after a failure entries may come twice.
        """

        def command(element: Any) -> Command:
            pairs = [part for pair in fields(element).items() for part in pair]
            return ("XADD", _named(name, element), "*" if entry_id is None else entry_id(element), *pairs)

        return _Mapped(command)

    @staticmethod
    def channel(name: Name, message: Callable[[Any], Any]) -> RedisMapper:
        """PUBLISH: a message for current subscribers. After a failure messages may come twice."""
        return _Mapped(lambda element: ("PUBLISH", _named(name, element), message(element)))


@dataclass(frozen=True)
class _Mapped(RedisMapper):
    command: Callable[[Any], Command]

    def commands(self, element: Any) -> Iterable[Command]:
        return (self.command(element),)


def _named(name: Name, element: Any) -> str:
    return name if isinstance(name, str) else name(element)


@dataclass(frozen=True)
class RedisSink(Sink):
    """Runs commands in Redis, at least once; made by `RedisSink.builder()`. Needs `penstock[redis]`.

    >>> totals = RedisMapper.string(lambda order: order["id"], lambda order: order["total"])
    >>> sink = RedisSink.builder().set_url("redis://localhost:6379/0").set_mapper(totals).build()
    """

    url: str
    mapper: RedisMapper
    batch_size: int = 500
    batch_interval_ms: int = 1000
    max_retries: int = 5
    on_refused: OnRefused = OnRefused.FAIL

    __repr__ = redacted_repr

    @staticmethod
    def builder() -> RedisSinkBuilder:
        """Begin to describe a sink."""
        return RedisSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> RedisWriter:
        return RedisWriter(self, context)


class RedisSinkBuilder:
    """Collects how to write to Redis. A URL and a mapper are needed.

    `RedisSink` has an example.
    """

    def __init__(self) -> None:
        self._url: str | None = None
        self._mapper: RedisMapper | None = None
        self._settings: dict[str, Any] = {}

    def set_url(self, url: str) -> RedisSinkBuilder:
        """`redis://[[user]:password@]host:port/database`; `rediss://` for TLS."""
        if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
            raise ValueError(
                f"RedisSink: the URL must begin with redis://, rediss:// or unix://, got {redacted_text(url)!r}"
            )
        self._url = url
        return self

    def set_mapper(self, mapper: RedisMapper) -> RedisSinkBuilder:
        """Choose what turns elements into commands."""
        if not isinstance(mapper, RedisMapper):
            raise TypeError(f"RedisSink: mapper must be a RedisMapper such as RedisMapper.string(...), got {mapper!r}")
        self._mapper = mapper
        return self

    def set_batch_size(self, batch_size: int) -> RedisSinkBuilder:
        """How many commands are sent at once; 500, unless set."""
        return self._set(batch_size=batch_size)

    def set_batch_interval_ms(self, batch_interval_ms: int) -> RedisSinkBuilder:
        """How long a command may wait for others; a second, unless set. A checkpoint waits for all."""
        return self._set(batch_interval_ms=batch_interval_ms)

    def set_max_retries(self, max_retries: int) -> RedisSinkBuilder:
        """How often commands are repeated when Redis cannot be reached or takes none; 5 times, unless set."""
        return self._set(max_retries=max_retries)

    def set_on_refused(self, on_refused: OnRefused) -> RedisSinkBuilder:
        """What becomes of elements that the mapper or Redis refuses: they fail the job, unless set."""
        self._settings["on_refused"] = OnRefused(on_refused)
        return self

    def build(self) -> RedisSink:
        """The sink; ValueError if something is missing."""
        if self._url is None:
            raise ValueError("RedisSink: no URL; call set_url('redis://host:6379/0')")
        if self._mapper is None:
            raise ValueError("RedisSink: no mapper; call set_mapper(RedisMapper.string(key, value)) or another one")
        return replace(RedisSink(self._url, self._mapper), **self._settings)

    def _set(self, **settings: int) -> RedisSinkBuilder:
        for name, value in settings.items():
            if value < 0:
                raise ValueError(f"RedisSink: {name} must not be negative, got {value}")
        self._settings.update(settings)
        return self


class RedisWriter(SinkWriter[Any]):
    """Sends commands in batches; all have been answered before a checkpoint is complete."""

    def __init__(
        self, sink: RedisSink, context: WriterInitContext, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._library = optional_package("redis", "redis", _USER)
        self._client = self._library.Redis.from_url(sink.url)
        self._mapper = sink.mapper
        self._max_retries = sink.max_retries
        self._refused = RefusedRecords(sink.on_refused, context.metric_group(), _USER)
        self._pause = pause
        times = context.get_processing_time_service()
        self._buffer: BatchBuffer[tuple[Any, Command]] = BatchBuffer(
            sink.batch_size, sink.batch_interval_ms, times, self._send
        )

    def write(self, element: Any, context: SinkWriterContext) -> None:
        try:
            commands = list(self._mapper.commands(element))
        except Exception as reason:  # Whatever a mapper raises is its way to refuse.
            self._refused.add(element, reason)
            return
        for command in commands:
            self._buffer.add((element, command))

    def flush(self, end_of_input: bool) -> None:
        self._buffer.write()

    def close(self) -> None:
        self._client.close()

    def _send(self, batch: list[tuple[Any, Command]]) -> None:
        """Send commands until Redis has answered all of them.

        A command that the server cannot run now is sent again with all that follow it, so that commands stay in order.
        """
        attempt = 0
        while batch:
            try:
                done, failure = self._attempt(batch)
            except self._library.DataError:  # Nothing was sent: the client encodes all commands first.
                sendable = self._without_unencodable(batch)
                if len(sendable) == len(batch):
                    raise
                batch = sendable
                continue
            batch = batch[done:]
            if failure is not None:
                self._wait_or_fail(attempt, len(batch), failure)
                attempt += 1

    def _attempt(self, batch: list[tuple[Any, Command]]) -> tuple[int, Exception | None]:
        """How many commands are done, and why the next one is not."""
        try:
            answers = self._answers([command for _, command in batch])
        except (self._library.ConnectionError, self._library.TimeoutError) as lost:
            return 0, lost
        for at, ((element, command), answer) in enumerate(zip(batch, answers, strict=True)):
            if isinstance(answer, Exception) and not _was_added_before(command, answer):
                if not self._is_about_the_command(answer):
                    return at, answer
                self._refused.add(element, _refusal(command, answer))
        return len(batch), None

    def _answers(self, commands: list[Command]) -> list[Any]:
        """What Redis says to each command."""
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        answers: list[Any] = pipeline.execute(raise_on_error=False)
        return answers

    def _without_unencodable(self, batch: list[tuple[Any, Command]]) -> list[tuple[Any, Command]]:
        """The commands that the client can send; others hold a value such as None and are refused."""
        encode = self._client.get_encoder().encode
        kept = []
        for element, command in batch:
            try:
                for part in command:
                    encode(part)
            except self._library.DataError as refusal:
                self._refused.add(element, _unencodable(command, refusal))
            else:
                kept.append((element, command))
        return kept

    def _is_about_the_command(self, answer: Exception) -> bool:
        """True if Redis refuses the command itself; False if it takes none now, as when it is read-only or full."""
        if isinstance(answer, (self._library.exceptions.NoScriptError, self._library.exceptions.ClusterCrossSlotError)):
            return True
        if type(answer) is not self._library.ResponseError:
            return False  # The client has classes of its own for most states of a server.
        code = str(answer).partition(" ")[0]
        return code == _WRONG_TYPE or _CODE.match(code) is None

    def _wait_or_fail(self, attempt: int, commands: int, failure: Exception) -> None:
        if attempt == self._max_retries:
            raise ConnectorError(
                f"{_USER}: {commands} commands were not written in {attempt + 1} attempts: {failure}"
            ) from failure
        self._pause(min(_FIRST_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S))


def _was_added_before(command: Command, answer: Exception) -> bool:
    return command[0] == "XADD" and command[2] != "*" and _ADDED_BEFORE in str(answer)


def _unencodable(command: Command, refusal: Exception) -> ConnectorError:
    shown = " ".join(map(str, command))[:200]
    error = ConnectorError(f"{_USER}: {shown!r} cannot be sent: {refusal}; map values to text, bytes or numbers")
    error.__cause__ = refusal
    return error


def _refusal(command: Command, answer: Exception) -> ConnectorError:
    refusal = ConnectorError(f"{_USER}: Redis refuses {' '.join(map(str, command))[:200]!r}: {answer}")
    refusal.__cause__ = answer
    return refusal
