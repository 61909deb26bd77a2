"""Calls that do not return: waited for as long as the job may go on, and then left alone."""

from __future__ import annotations

import threading

import pytest

from penstock.common.abandoned_calls import check_wanted
from penstock.common.daemon_pool import DaemonPool
from penstock.common.exceptions import AbandonedError
from penstock.jobmaster.execution.side_by_side import Patience, run_side_by_side

LONG_S = 10


def test_result_and_failure_are_those_of_the_call():
    patience = Patience(1)
    assert patience.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        patience.call(lambda: 1 // 0)
    assert not patience.has_given_up


def test_call_that_returns_in_time_is_waited_for_after_the_end():
    patience, may_return = Patience(1000 * LONG_S), threading.Event()

    def call():
        patience.must_end()
        patience.must_end()
        assert not may_return.wait(0.01)
        return "done"

    assert patience.call(call) == "done"


def test_call_that_does_not_return_is_left_alone_and_notices_it():
    patience, may_return, noticed = Patience(1), threading.Event(), []
    ended = threading.Event()

    def call():
        check_wanted()
        patience.must_end()
        assert may_return.wait(LONG_S)
        pool = DaemonPool(1, "pool")
        for check in (check_wanted, pool.submit(check_wanted).result):
            try:
                check()
            except AbandonedError:
                noticed.append(check)
        pool.shutdown()
        ended.set()

    with pytest.raises(AbandonedError):
        patience.call(call)
    assert patience.has_given_up
    check_wanted()  # This thread works for itself.
    assert patience.call(lambda: check_wanted() or "another") == "another"
    may_return.set()
    assert ended.wait(LONG_S) and len(noticed) == 2


def test_patience_without_a_limit_waits():
    patience, may_return = Patience(0), threading.Event()
    patience.must_end()
    threading.Timer(0.05, may_return.set).start()
    assert patience.call(lambda: may_return.wait(LONG_S))


def test_failure_of_one_ends_the_others_and_is_raised_even_if_one_does_not_return():
    patience, blocked, may_end, abandoned = Patience(1), threading.Event(), threading.Event(), []

    def on_failure():
        may_end.set()
        patience.must_end()

    actions = [lambda: may_end.wait(LONG_S), lambda: blocked.wait(LONG_S), lambda: [].pop()]
    try:
        with pytest.raises(IndexError):
            run_side_by_side(actions, on_failure, patience, abandoned.append)
    finally:
        blocked.set()
    assert may_end.is_set() and abandoned == [1]


def test_those_that_have_not_ended_are_named():
    patience, blocked, abandoned = Patience(1), threading.Event(), []
    try:
        run_side_by_side([patience.must_end, lambda: blocked.wait(LONG_S)], lambda: None, patience, abandoned.append)
    finally:
        blocked.set()
    assert abandoned == [1]
