"""Who calls a listener: those who know the secret are let in, whatever the others do."""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.runtime.connection import Address, Connection, Kind, Listener, connect, greet

SECRET = b"secret"
WITHIN_S = 30
HOSTS = ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6"))]


class Listening:
    def __init__(self, host: str = "127.0.0.1", **options: object) -> None:
        self.host = host
        self.let_in: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self.listener = Listener(SECRET, None, host, **options)  # type: ignore[arg-type]
        self.listener.serve(self.let_in.put)
        self._stack = contextlib.ExitStack()
        self._stack.callback(self.listener.close)

    def stranger(self) -> socket.socket:
        """Somebody who says nothing."""
        return self._stack.enter_context(socket.create_connection((self.host, self.listener.port), WITHIN_S))

    def call(self) -> None:
        """One who knows the secret gets in and is heard."""
        caller = connect(Address(None, self.host, self.listener.port), SECRET)
        self._stack.callback(caller.close)
        caller.send_message(Kind.HELLO, b"it's me")
        accepted = self.let_in.get(timeout=WITHIN_S)
        self._stack.callback(accepted.close)
        assert accepted.receive()[1].chunk == b"it's me"

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def listening() -> Iterator[type[Listening]]:
    made: list[Listening] = []

    class Made(Listening):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            made.append(self)

    yield Made
    for each in made:
        each.close()


@pytest.mark.parametrize("host", HOSTS)
def test_address_of_either_kind_is_called(listening, host):
    listening(host).call()


def test_listener_continues_after_the_process_has_run_out_of_file_descriptors(listening):
    waiting = listening(expected=2)
    address = waiting.host, waiting.listener.port
    with socket.socket() as first, socket.socket() as second:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        next_descriptor = os.dup(0)
        os.close(next_descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor, hard))
        try:
            # Whether the first caller is accepted depends on who was faster: an `accept` that waits has a descriptor.
            # The next `accept` fails in any case.
            first.connect(address)
            second.connect(address)
            time.sleep(0.3)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for caller in (first, second):
            greet(caller, SECRET)
            waiting.let_in.get(timeout=WITHIN_S).close()


def test_strangers_cannot_hold_more_than_a_few_threads(listening):
    waiting = listening(expected=2)
    before = threading.active_count()
    strangers = [waiting.stranger() for _ in range(200)]
    for stranger in strangers[: 200 - 66]:
        assert stranger.recv(1) == b""  # The oldest are hung up on when new ones come.
    ends_s = time.monotonic() + WITHIN_S
    while threading.active_count() - before > 70 and time.monotonic() < ends_s:
        time.sleep(0.01)  # The thread of a connection ends a moment after it.
    assert threading.active_count() - before <= 70
    waiting.call()


def test_stranger_that_says_a_little_now_and_then_has_no_more_time_than_others(listening):
    waiting = listening(greeting_s=0.3)
    stranger = waiting.stranger()
    has_ended = threading.Event()

    def say_a_little() -> None:
        with contextlib.suppress(OSError):
            for byte in b"penstock" + bytes(100):
                stranger.sendall(bytes([byte]))
                if has_ended.wait(0.1):
                    return

    talking = threading.Thread(target=say_a_little)
    talking.start()
    # With 0.3 s for each byte it would take ten seconds. A byte that nobody has read makes the end a reset.
    with contextlib.suppress(ConnectionResetError):
        assert stranger.recv(1) == b""
    has_ended.set()
    talking.join(WITHIN_S)
    waiting.call()


def test_those_who_are_expected_may_all_come_at_once(listening):
    waiting = listening(expected=100)
    callers = [threading.Thread(target=waiting.call) for _ in range(100)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(WITHIN_S)
        assert not caller.is_alive()
