from __future__ import annotations

import contextlib
import itertools
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_port
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph.descriptions import SocketSourceDescription
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.jobmaster.sources.socket_receiver import RecordSplitter, SocketReceiver
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import read_chunk

PATIENCE_S = 10

# --- splitting -------------------------------------------------------------------------------------------------------


def split(delimiter: str, *parts: bytes) -> list[bytes]:
    splitter = RecordSplitter(delimiter)
    return [record for part in parts for record in splitter.feed(part)] + splitter.end()


@st.composite
def cut_texts(draw) -> tuple[str, bytes, list[bytes]]:
    delimiter = draw(st.sampled_from(["\n", "||", "\r\n", "aa", "é"]))
    pieces = draw(st.lists(st.sampled_from([delimiter, "a", "|", "\r", "x", "é", ""]), max_size=14))
    text = "".join(pieces).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    return delimiter, text, [text[start:end] for start, end in itertools.pairwise(bounds)]


@given(cut_texts())
def test_records_do_not_depend_on_how_the_bytes_came(case):
    delimiter, text, parts = case
    assert split(delimiter, *parts) == split(delimiter, text)


@given(cut_texts())
def test_records_are_what_lies_between_the_delimiters(case):
    delimiter, text, parts = case
    *whole, last = text.split(delimiter.encode())
    if delimiter == "\n":
        whole = [record.removesuffix(b"\r") for record in whole]
    assert split(delimiter, *parts) == whole + ([last] if last else [])


def test_carriage_return_before_a_newline_is_dropped():
    assert split("\n", b"a\r\nb\n\r\n") == [b"a", b"b", b""]


def test_carriage_return_is_kept_before_other_delimiters():
    assert split("|", b"a\r|b") == [b"a\r", b"b"]


def test_only_one_carriage_return_is_dropped():
    assert split("\n", b"a\r\r\n") == [b"a\r"]


def test_last_record_needs_no_delimiter():
    assert split("\n", b"a\nb") == [b"a", b"b"]


def test_empty_lines_are_records_but_the_end_is_none():
    assert split("\n", b"\n\na\n") == [b"", b"", b"a"]


def test_delimiter_may_be_cut_in_two():
    assert split("||", b"a|", b"|b|c||") == [b"a", b"b|c"]


# --- receiving -------------------------------------------------------------------------------------------------------


class Server:
    """Serves one connection after the other with what it is told."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self.port: int = self._listening.getsockname()[1]

    def serve(self, *parts: bytes) -> None:
        """Wait for a client, send the parts, hang up."""
        connection, _ = self._listening.accept()
        with connection:
            for part in parts:
                connection.sendall(part)

    def accept(self) -> socket.socket:
        return self._listening.accept()[0]

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with contextlib.closing(Server()) as server:
        yield server


class Received:
    """A receiver with its spool, and a way to wait for it."""

    def __init__(self, folder: Path, port: int, **settings) -> None:
        self._changed = threading.Condition()
        self.spool = ElementSpool(folder, 1000, 10**6, self._on_change)
        self._description = SocketSourceDescription("127.0.0.1", port, retry_delay_ms=1, **settings)
        self._lines: list[str] = []
        self.start()

    def start(self) -> None:
        self.receiver = SocketReceiver(self._description, self.spool, self._on_change)
        self.receiver.start()

    def lines(self) -> list[str]:
        """All that has come so far."""
        for chunk in self.spool.take(None):
            for event in read_chunk(chunk):
                assert isinstance(event, Batch)
                self._lines += event.values
        return self._lines

    def _on_change(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(is_so, PATIENCE_S)

    def wait_for_end(self) -> list[str]:
        self.wait_until(lambda: self.receiver.has_ended or self.receiver.failure is not None)
        return self.lines()

    def stop(self) -> None:
        self.receiver.cancel()
        self.spool.close()
        self.receiver.join(PATIENCE_S * 1000)

    def close(self) -> None:
        self.stop()
        self.spool.release()


@pytest.fixture
def receive(tmp_path) -> Iterator[Callable[..., Received]]:
    with contextlib.ExitStack() as stack:

        def make(port: int, **settings) -> Received:
            return stack.enter_context(contextlib.closing(Received(tmp_path / "spool", port, **settings)))

        yield make


def test_records_come_until_the_server_hangs_up(server, receive):
    received = receive(server.port)
    server.serve(b"one\ntw", b"o\nthree")
    assert received.wait_for_end() == ["one", "two", "three"]
    assert received.receiver.has_ended and received.receiver.failure is None


def test_records_can_be_read_while_the_connection_lasts(server, receive):
    received = receive(server.port)
    with server.accept() as connection:
        connection.sendall(b"one\ntwo\nthr")
        received.wait_until(lambda: len(received.lines()) == 2)
        assert not received.receiver.has_ended
        connection.sendall(b"ee\n")
        received.wait_until(lambda: len(received.lines()) == 3)


def test_lost_connection_is_made_again_as_often_as_allowed(server, receive):
    received = receive(server.port, max_retries=2)
    for line in (b"one\n", b"two\n", b"three\n"):
        server.serve(line)
    assert received.wait_for_end() == ["one", "two", "three"]


def test_delimiter_of_the_description_is_used(server, receive):
    received = receive(server.port, delimiter="; ")
    server.serve(b"one; two;", b" three")
    assert received.wait_for_end() == ["one", "two", "three"]


def test_refused_connection_says_what_to_do(receive):
    port = free_port()
    received = receive(port)
    received.wait_for_end()
    assert not received.receiver.has_ended
    expected = (
        f"socket source 127.0.0.1:{port}: cannot connect (Connection refused); start a server there first, for example "
        f"`nc -lk {port}`, or give socket_text_stream a max_retry"
    )
    assert re.fullmatch(re.escape(expected), str(received.receiver.failure))


def test_unknown_host_is_named(tmp_path):
    spool = ElementSpool(tmp_path / "spool", 10, 1000, lambda: None)
    ended = threading.Event()
    receiver = SocketReceiver(SocketSourceDescription("no-such-host.invalid", 1), spool, ended.set)
    receiver.start()
    assert ended.wait(PATIENCE_S)
    assert str(receiver.failure).startswith("socket source no-such-host.invalid:1: cannot connect (")


def test_server_that_starts_late_is_reached_by_retries(receive):
    port = free_port()
    received = receive(port, max_retries=-1)
    with contextlib.closing(socket.create_server(("127.0.0.1", port))) as listening:
        listening.settimeout(PATIENCE_S)
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"at last\n")
            received.wait_until(lambda: len(received.lines()) == 1)


def test_receiver_that_waits_for_its_server_can_be_stopped(receive):
    received = receive(free_port(), max_retries=-1)
    received.stop()
    assert received.receiver.failure is None


def test_receiver_that_reads_can_be_stopped(server, receive):
    received = receive(server.port)
    with server.accept() as connection:
        connection.sendall(b"one\nhalf of the ne")
        received.wait_until(lambda: len(received.lines()) == 1)
        received.stop()
    assert received.lines() == ["one"]


def test_failed_receiver_connects_again_when_the_job_starts_again(receive):
    port = free_port()
    received = receive(port)
    received.wait_for_end()
    with contextlib.closing(socket.create_server(("127.0.0.1", port))) as listening:
        listening.settimeout(PATIENCE_S)
        received.start()
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"there you are\n")
    assert received.wait_for_end() == ["there you are"]
    assert received.receiver.failure is None


def test_receiver_reads_no_more_than_the_spool_has_space_for(server, receive):
    received = receive(server.port)
    received.spool.limit(10)
    with server.accept() as connection:
        connection.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200_000_000:  # More than the buffers of any operating system.
                sent += connection.send(b"0123456789\n" * 10_000)
        assert sent < 200_000_000, "the sender had to wait"
        expected = sent // 11
        connection.shutdown(socket.SHUT_WR)
        received.wait_until(lambda: len(received.lines()) >= expected)
    assert set(received.lines()[:expected]) == {"0123456789"}, "and nothing is lost by that"


def test_receiver_that_is_held_takes_nothing(server, receive):
    received = receive(server.port)
    with server.accept() as connection:
        connection.sendall(b"one\n")
        received.wait_until(lambda: len(received.lines()) == 1)
        received.receiver.hold()
        connection.sendall(b"two\n")
        received.receiver.catch_up()
        assert received.lines() == ["one"]
        received.receiver.let_go()
        received.wait_until(lambda: len(received.lines()) == 2)


def test_receiver_that_is_held_can_be_stopped(server, receive):
    received = receive(server.port)
    with server.accept() as connection:
        connection.sendall(b"one\n")
        received.wait_until(lambda: len(received.lines()) == 1)
        received.receiver.hold()
        connection.sendall(b"two\n")
        received.stop()
    assert received.lines() == ["one"]


def test_lines_come_once_and_in_order_whoever_of_the_two_reads_them(server, receive):
    received = receive(server.port)
    expected = [str(number) for number in range(3000)]

    def send() -> None:
        with server.accept() as connection:
            for number in expected:
                connection.sendall(f"{number}\n".encode())

    sender = threading.Thread(target=send)
    sender.start()
    while not received.receiver.has_ended:
        received.receiver.catch_up()
        received.lines()
    sender.join(PATIENCE_S)
    assert received.lines() == expected
