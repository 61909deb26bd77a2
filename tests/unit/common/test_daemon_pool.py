"""Calls in threads that do not keep the process alive."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from penstock.common.daemon_pool import DaemonPool


def test_calls_run_at_the_same_time_and_no_more_than_there_are_threads():
    pool, meeting = DaemonPool(3, "three"), threading.Barrier(3)
    places = [pool.submit(meeting.wait, 10) for _ in range(9)]
    assert sorted(place.result() for place in places) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len([each for each in threading.enumerate() if each.name.startswith("three-")]) == 3
    pool.shutdown()
    assert not [each for each in threading.enumerate() if each.name.startswith("three-")]


def test_one_thread_makes_calls_in_order():
    pool, made = DaemonPool(1, "one"), []
    for number in range(100):
        pool.submit(made.append, number)
    pool.shutdown()
    assert made == list(range(100))


def test_failure_is_for_whoever_asks_and_the_thread_goes_on():
    pool = DaemonPool(1, "one")
    failed, done = pool.submit(int, "x"), pool.submit(int, "7")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result()
    assert done.result() == 7
    pool.shutdown()


def test_call_has_the_context_of_its_caller():
    job: ContextVar[str] = ContextVar("job", default="none")
    pool = DaemonPool(1, "one")
    token = job.set("first")
    first = pool.submit(job.get)
    job.reset(token)
    assert (first.result(), pool.submit(job.get).result()) == ("first", "none")
    pool.shutdown()


def test_closed_pool_takes_no_calls():
    pool = DaemonPool(1, "one")
    pool.shutdown()
    with pytest.raises(RuntimeError, match="pool 'one' is closed"):
        pool.submit(int)


def test_without_a_thread_the_call_is_refused_and_with_one_it_is_made(monkeypatch):
    pool, may_go_on = DaemonPool(2, "two"), threading.Event()
    start = threading.Thread.start

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.submit(int)
    monkeypatch.setattr(threading.Thread, "start", start)
    busy = pool.submit(may_go_on.wait, 10)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    waiting = pool.submit(int, "7")
    may_go_on.set()
    assert busy.result() and waiting.result() == 7
    monkeypatch.undo()
    pool.shutdown()


def test_process_ends_while_a_call_does_not_return():
    program = (
        "import threading; from penstock.common.daemon_pool import DaemonPool; "
        "DaemonPool(1, 'one').submit(threading.Event().wait)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
