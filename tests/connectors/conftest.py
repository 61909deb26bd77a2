"""Servers that the tests of this folder share, each started when the first test asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from servers import KafkaServer, PostgresServer, RedisServer, Server

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit" / "sinks"), str(HERE.parent / "unit" / "sources")]

S = TypeVar("S", bound="Server")


def _running(kind: type[S], factory: pytest.TempPathFactory) -> Iterator[S]:
    from servers import ServerUnavailableError

    try:
        server = kind(factory.mktemp(kind.name))
    except ServerUnavailableError as reason:
        pytest.skip(str(reason))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    from servers import KafkaServer

    yield from _running(KafkaServer, tmp_path_factory)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    from servers import PostgresServer

    yield from _running(PostgresServer, tmp_path_factory)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    from servers import RedisServer

    yield from _running(RedisServer, tmp_path_factory)
