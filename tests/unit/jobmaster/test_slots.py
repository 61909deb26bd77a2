"""Slots: jobs wait for them, and say what they lack."""

from __future__ import annotations

import threading

import pytest

from penstock.common import Configuration
from penstock.common.job_status import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.slots import NoResourceAvailableError, SlotPool, required_slots


def never() -> bool:
    return False


def test_operators_of_one_group_share_slots():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    stream = env.from_sequence(1, 9).key_by(lambda v: v).map(lambda v: v).set_parallelism(5)
    stream.rebalance().map(lambda v: v).set_parallelism(3).slot_sharing_group("other").print()
    assert required_slots(build_job_graph(env.get_stream_graph())) == 5 + 3


def test_slots_are_given_back():
    pool = SlotPool(3)
    with pool.held(2, 1000, never, "a"):
        assert pool.available == 1
        with pool.held(1, 1000, never, "b"):
            assert pool.available == 0
    assert pool.available == 3


def test_too_few_slots_is_an_error_that_says_how_many():
    pool = SlotPool(2)
    lacking = r"job 'large' .* within 1 ms: required 4, available 2 of 2"
    with pytest.raises(NoResourceAvailableError, match=lacking), pool.held(4, 1, never, "large"):
        raise AssertionError("must not begin")
    assert pool.available == 2


def test_job_begins_when_another_has_ended():
    pool, order = SlotPool(2), []
    has_begun, may_end = threading.Event(), threading.Event()

    def first() -> None:
        with pool.held(2, 1000, never, "first"):
            has_begun.set()
            may_end.wait()
            order.append("first")

    def second() -> None:
        with pool.held(1, 60_000, never, "second"):
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    has_begun.wait()
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert order == ["first", "second"]


def test_waiting_job_begins_when_executors_come():
    pool, has_begun = SlotPool(1), threading.Event()

    def wait() -> None:
        with pool.held(3, 60_000, never, "waiting"):
            has_begun.set()

    thread = threading.Thread(target=wait)
    thread.start()
    pool.resize(3)
    thread.join()
    assert has_begun.is_set() and pool.available == 3


def environment(**settings: str) -> StreamExecutionEnvironment:
    config = Configuration().set_string("execution.target", "inline")
    for key, value in settings.items():
        config.set_string(key.replace("__", "."), value)
    return StreamExecutionEnvironment.get_execution_environment(config)


def test_job_without_limit_runs_at_any_parallelism():
    env = environment()
    env.set_parallelism(7)
    env.from_sequence(1, 9).map(lambda v: v).print()
    env.execute()


def test_job_that_gets_no_slots_fails():
    env = environment(taskmanager__numberOfTaskSlots="2", slot__request__timeout="10 ms")
    env.set_parallelism(3)
    env.from_sequence(1, 9).map(lambda v: v).print()
    with pytest.raises(NoResourceAvailableError, match="required 3, available 2 of 2"):
        env.execute()


def test_job_that_waits_for_slots_can_be_cancelled():
    env = environment(taskmanager__numberOfTaskSlots="2")
    env.set_parallelism(3)
    env.from_sequence(1, 9).map(lambda v: v).print()
    client = env.execute_async()
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
