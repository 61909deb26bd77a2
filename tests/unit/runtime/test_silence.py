"""Processes that do not answer: lost, or at work, or not heard because nobody listened."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.connection import Connection
from penstock.runtime.silence import AT_WORK, Silence, Verdict, cpu_seconds_of

INTERVAL_S, TIMEOUT_S = 10.0, 50.0
COMPUTES = "print('begun', flush=True); sum(range(10**12))"


class Other:
    """The clock, and what the process at the other end has used of its CPU."""

    def __init__(self) -> None:
        self.now_s, self.used_s = 1000.0, 0.0
        self.silence = Silence(INTERVAL_S, TIMEOUT_S, lambda: self.used_s, lambda: self.now_s)

    def look_after(self, seconds: float, share: float = 0.0) -> Verdict:
        self.now_s += seconds
        self.used_s += seconds * share
        return self.silence.look()


def test_a_process_that_neither_answers_nor_computes_is_lost() -> None:
    other = Other()
    assert [other.look_after(INTERVAL_S) for _ in range(6)] == [Verdict.ALIVE] * 5 + [Verdict.LOST]


def test_waiting_for_the_interpreter_is_no_work() -> None:
    other = Other()
    assert [other.look_after(INTERVAL_S, AT_WORK / 2) for _ in range(6)] == [Verdict.ALIVE] * 5 + [Verdict.LOST]


def test_a_process_that_computes_is_not_lost_until_it_stands_still() -> None:
    other = Other()
    for _ in range(3):
        assert [other.look_after(INTERVAL_S, 0.3) for _ in range(6)] == [Verdict.ALIVE] * 5 + [Verdict.AT_WORK]
        other.silence.heard()
    assert [other.look_after(INTERVAL_S) for _ in range(6)] == [Verdict.ALIVE] * 5 + [Verdict.LOST]


def test_work_before_the_silence_does_not_count() -> None:
    other = Other()
    for _ in range(100):
        other.silence.heard()
        assert other.look_after(INTERVAL_S, 1.0) is Verdict.ALIVE
    assert [other.look_after(INTERVAL_S) for _ in range(5)] == [Verdict.ALIVE] * 4 + [Verdict.LOST]


def test_nobody_is_lost_because_this_process_stood_still() -> None:
    other = Other()
    assert other.look_after(INTERVAL_S) is Verdict.ALIVE
    assert other.look_after(10 * TIMEOUT_S) is Verdict.ALIVE  # What came meanwhile was not read yet.
    assert [other.look_after(INTERVAL_S) for _ in range(4)] == [Verdict.ALIVE] * 3 + [Verdict.LOST]


def test_without_figures_of_the_system_silence_decides() -> None:
    now_s = 0.0
    silence = Silence(INTERVAL_S, TIMEOUT_S, clock=lambda: now_s)
    verdicts = []
    for _ in range(6):
        now_s += INTERVAL_S
        verdicts.append(silence.look())
    assert verdicts == [Verdict.ALIVE] * 5 + [Verdict.LOST]


@given(st.lists(st.tuples(st.floats(0.1, 3 * INTERVAL_S), st.floats(0, 1), st.booleans()), max_size=60))
def test_who_is_heard_within_the_timeout_is_never_lost(looks):
    other = Other()
    silent_s = 0.0
    for seconds, share, is_heard in looks:
        if is_heard or silent_s + seconds > TIMEOUT_S:
            other.silence.heard()
            silent_s = 0.0
        silent_s += seconds
        assert other.look_after(seconds, share) is Verdict.ALIVE


# --- real processes --------------------------------------------------------------------------------------------------


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", request.param]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stdout.readline() == "begun\n"
        yield started
        started.kill()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system has no /proc")
@pytest.mark.parametrize("process", [COMPUTES], indirect=True)
def test_the_system_says_how_much_a_process_has_computed(process: subprocess.Popen[str]) -> None:
    cpu_seconds = cpu_seconds_of(process.pid)
    before = cpu_seconds()
    while cpu_seconds() == before:
        threading.Event().wait(0.01)
    process.kill()
    process.wait()
    assert before is not None and cpu_seconds() is None


def test_nothing_is_known_of_a_process_of_another_machine() -> None:
    assert cpu_seconds_of(None)() is None


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system does not say who is at the other end")
def test_the_other_end_of_a_connection_is_known() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    assert Connection(here).peer_process() is None  # It is this process.
    with socket.socket(socket.AF_INET) as elsewhere:
        assert Connection(elsewhere).peer_process() is None
    here.close()
    there.close()
