"""Servers that the tests of this folder share, each started when the first test asks for it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from bulk_server import BulkServer
    from servers import KafkaServer, MySqlServer, PostgresServer, RedisServer, SecuredKafkaServer, Server

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit" / "sinks"), str(HERE.parent / "unit" / "sources")]

S = TypeVar("S", bound="Server")


def _running(kind: type[S]) -> Iterator[S]:
    from servers import ServerUnavailableError

    # Not among pytest's folders: only their owner may enter those, and a server may run as another user.
    with tempfile.TemporaryDirectory(prefix="penstock-server-") as folder:
        try:
            server = kind(Path(folder))
        except ServerUnavailableError as reason:
            pytest.skip(str(reason))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def bulk_server() -> Iterator[BulkServer]:
    from bulk_server import BulkServer

    server = BulkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    from servers import KafkaServer

    yield from _running(KafkaServer)


@pytest.fixture(scope="module")
def secured_kafka() -> Iterator[SecuredKafkaServer]:
    from servers import SecuredKafkaServer

    yield from _running(SecuredKafkaServer)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    from servers import PostgresServer

    yield from _running(PostgresServer)


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySqlServer]:
    from servers import MySqlServer

    yield from _running(MySqlServer)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    from servers import RedisServer

    yield from _running(RedisServer)
