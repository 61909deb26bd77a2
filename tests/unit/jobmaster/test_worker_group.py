"""What a driver and its workers do for each other in epochs, failures and at the end."""

from __future__ import annotations

import os
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_groups import (
    ONE_MACHINE,
    OVER_TCP,
    WITHIN_S,
    Group,
    acknowledged,
    alone,
    collected,
    counted,
    counted_behind_two_exchanges,
    deployment_of,
    failing_at_bad,
    graph_of,
)

from penstock.datastream import MapFunction
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup, WorkerLostError
from penstock.runtime.connection import Kind
from penstock.runtime.protocol import EpochCommand, SubtaskOrder
from penstock.runtime.resident_worker import ResidentWorker
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, Row
from penstock.runtime.worker import stages_of
from penstock.testing.memory_folder import MemoryFolder


@pytest.mark.parametrize("group_settings", [ONE_MACHINE, OVER_TCP], ids=["unix", "tcp"])
@pytest.mark.parametrize(("workers", "parallelism"), [(1, 3), (2, 2), (2, 5), (3, 3)])
def test_several_workers_give_what_one_gives(group, workers, parallelism, group_settings):
    graph = graph_of(counted_behind_two_exchanges, parallelism)
    epochs = [["to", "be", "or"], [], ["not", "to", "be"] * 3000, ["be"]]
    several = group(workers, group_settings)
    assert several.deploy(graph) == []
    results = [several.run(records, is_report=True) for records in epochs]
    assert [collected(rows) for rows in results] == alone(graph, epochs)
    everybody = {
        (vertex.id, subtask) for vertex in graph.vertices if vertex.stage >= 0 for subtask in range(vertex.parallelism)
    }
    assert all(acknowledged(rows) == everybody for rows in results)


def test_only_subtasks_that_have_something_to_do_acknowledge_a_plain_epoch(group):
    several = group(2)
    several.deploy(graph_of(counted, 4))
    everybody = acknowledged(several.run(["a", "b"]))
    assert len(everybody) == 1 + 4 + 4
    rows = several.run(["a"])
    sink = [subtask for subtask, values in collected(rows).items() if values]
    assert acknowledged(rows) - {(1, 0), (1, 1), (1, 2), (1, 3)} == {(0, 0), (2, sink[0])}
    assert len(acknowledged(rows)) == 3
    assert acknowledged(several.run([], is_report=True)) == everybody


@settings(max_examples=15)
@given(
    workers=st.integers(1, 3),
    parallelism=st.integers(1, 4),
    epochs=st.lists(st.lists(st.sampled_from("abcdefg"), max_size=20), min_size=1, max_size=5),
)
def test_any_epochs_give_the_same_on_any_number_of_workers(workers, parallelism, epochs):
    graph = graph_of(counted_behind_two_exchanges, parallelism)
    several = Group(workers)
    try:
        several.deploy(graph)
        assert [collected(several.run(records)) for records in epochs] == alone(graph, epochs)
    finally:
        several.close()


def test_failure_of_a_function_leaves_the_workers_and_the_next_run_begins_anew(group):
    graph = graph_of(failing_at_bad, 3)
    several = group(3)
    several.deploy(graph)
    several.run(["good"])
    processes = [worker for worker in several.workers.values()]
    rows = several.run(["good", "bad", "good"])
    [failure] = [pickle.loads(row.chunk) for row in rows if row.vertex == FAILURE]
    assert "a bad word" in failure.message
    assert several.group.release()
    several.deploy(graph)
    assert collected(several.run(["good"])) == alone(graph, [["good"]])[0]
    assert [worker for worker in several.workers.values()] == processes and several.losses == []


def test_job_that_cannot_be_loaded_is_reported_as_a_failure(group):
    several = group(2)
    rows = several.group.deploy(b"no pickle", MemoryFolder())
    assert "could not be loaded in worker" in pickle.loads(rows[0].chunk).task_name


@pytest.mark.parametrize("victim", [0, 1])
def test_worker_that_goes_is_reported_by_number_and_ends_the_others(group, victim):
    several = group(2)
    several.deploy(graph_of(counted, 2))
    several.run(["a", "b"])
    several.workers[victim]._control.close()
    for thread in several.threads:
        thread.join(WITHIN_S)
    assert several.losses == [True]
    with pytest.raises(WorkerLostError, match=r"worker [01]"):
        several.group.check()
    with pytest.raises(WorkerLostError):
        several.run(["a"])


def test_silent_worker_is_given_up(group):
    several = group(2, GroupSettings(heartbeat_interval_ms=20, heartbeat_timeout_ms=300))
    several.deploy(graph_of(counted, 2))
    lost = threading.Event()
    several.group._on_loss = lost.set
    # It neither reads nor writes any more, but its connection is open.
    several.workers[1]._control.send_unless_busy = lambda kind: None
    assert lost.wait(WITHIN_S)
    with pytest.raises(WorkerLostError, match=r"worker 1 .*has not been heard of for .*heartbeat.timeout is 0.3 s"):
        several.group.check()


def test_quiet_job_lives_on_as_long_as_hearts_beat(group):
    several = group(2, GroupSettings(heartbeat_interval_ms=10, heartbeat_timeout_ms=1000))
    several.deploy(graph_of(counted, 2))
    threading.Event().wait(1.5)
    assert not several.group.is_broken
    assert list(collected(several.run(["a"])).values()) == [[("a", 1)]]


def test_worker_waits_for_the_others_as_long_as_its_driver_lives():
    """Executors of a cluster may come minutes after the first one."""
    group = WorkerGroup(2, GroupSettings(heartbeat_interval_ms=10, heartbeat_timeout_ms=500), lambda: None)
    early, late = group.places()
    threads = [threading.Thread(target=lambda: ResidentWorker(early, end_process=lambda code: None).run())]
    threads[0].start()
    assert not group.wait_until_registered(timeout_s=1.5)
    threads.append(threading.Thread(target=lambda: ResidentWorker(late, end_process=lambda code: None).run()))
    threads[1].start()
    assert group.wait_until_registered(WITHIN_S)
    group.introduce(WITHIN_S)
    assert not group.is_broken
    group.close()
    for thread in threads:
        thread.join(WITHIN_S)
    group.hang_up()


def test_failure_of_the_exchange_is_reported_as_such(group, monkeypatch):
    """It is no function's failure, and its worker is not gone."""
    several = group(2)
    several.deploy(graph_of(counted, 2))
    inbox = several.workers[0]._inbox
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "put", _no_room)
        rows = several.run(["a", "b"])
    [failure] = [pickle.loads(row.chunk) for row in rows if row.vertex == FAILURE]
    assert "No space left" in failure.message and failure.task_name == "the exchange of worker 0"
    assert several.group.release()
    several.deploy(graph_of(counted, 2))
    assert collected(several.run(["a", "b"])) == alone(graph_of(counted, 2), [["a", "b"]])[0]


@pytest.mark.parametrize(
    ("error", "said"), [(OSError(28, "No space left on device"), "No space left"), (MemoryError(), "MemoryError")]
)
def test_worker_that_cannot_take_what_another_sends_says_so(group, monkeypatch, error, said):
    """Otherwise it would wait forever for a mark that nobody reads."""
    several = group(2)
    several.deploy(graph_of(lambda stream: stream.rebalance().map(str.upper), 2))
    monkeypatch.setattr(several.workers[1]._inbox, "put", lambda epoch, row: _raise(error))
    with pytest.raises(WorkerLostError, match=f"worker 1 .* to worker 0: .*{said}"):
        several.run(["a", "b", "c"])


def test_driver_that_cannot_take_what_a_worker_sends_says_so(group, monkeypatch):
    """Otherwise it would wait until the worker's heart is missed."""
    several = group(2)
    several.deploy(graph_of(counted, 2))
    monkeypatch.setattr(several.group, "_take", lambda member, epoch, row: _raise(MemoryError("a large row")))
    with pytest.raises(WorkerLostError, match=r"what worker . has sent could not be taken: MemoryError: a large row"):
        several.run(["a", "b"])


def test_worker_that_cannot_take_what_its_driver_sends_ends(group, monkeypatch):
    several = group(2)
    several.deploy(graph_of(counted, 2))
    monkeypatch.setattr(several.workers[1]._control, "receive", lambda: _raise(MemoryError("a large row")))
    with pytest.raises(WorkerLostError, match=r"worker [01] \(process .* is gone"):
        several.run(["a", "b"])  # The first frame is waited for already; the one after it is not read.
        several.run(["a", "b"])
    several.threads[1].join(WITHIN_S)
    assert not several.threads[1].is_alive() and several.ended == []


def _no_room(epoch: int, row: Row) -> None:
    raise OSError(28, "No space left on device")


def _raise(error: BaseException) -> None:
    raise error


def test_cancellation_while_workers_drop_their_subtasks_is_not_forgotten(group):
    several = group(1)
    several.deploy(graph_of(counted, 1))
    have_all = several.group._have_all

    def cancel_and_ask(kind: Kind, number: int) -> bool:
        several.group.cancel()
        return have_all(kind, number)

    several.group._have_all = cancel_and_ask
    assert several.group.release() and several.group.is_cancelled


def test_cancelled_driver_does_not_wait_for_a_function(group):
    started, go_on = threading.Event(), threading.Event()
    _waits[0] = (started, go_on)
    several = group(1)
    several.deploy(graph_of(lambda stream: stream.map(_wait).rebalance(), 1))
    threading.Thread(target=lambda: (started.wait(WITHIN_S), several.group.cancel())).start()
    several.run(["a"])
    assert several.group.is_cancelled
    go_on.set()


def test_threads_of_workers_are_reported_while_a_function_runs(group):
    started, go_on = threading.Event(), threading.Event()
    _waits[0] = (started, go_on)
    several = group(2)
    several.deploy(graph_of(lambda stream: stream.map(_wait).rebalance(), 1))
    running = threading.Thread(target=several.run, args=(["a"],))
    running.start()
    assert started.wait(WITHIN_S)
    told = several.group.threads(WITHIN_S)
    assert len(told) == 2 and {each.process for each in told} == {os.getpid()}
    assert any("in _wait" in thread.text for thread in told[0].threads)
    go_on.set()
    running.join(WITHIN_S)


def test_functions_are_closed_although_the_driver_has_gone_meanwhile(group):
    started, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    _waits[0], _closed[0] = (started, go_on), closed
    several = group(1)
    several.deploy(graph_of(lambda stream: stream.map(_WaitsAndCloses()), 1))
    threading.Thread(target=lambda: (started.wait(WITHIN_S), several.group.lose("cut off"), go_on.set())).start()
    with pytest.raises(WorkerLostError, match="cut off"):
        several.run(["a"])
    several.threads[0].join(WITHIN_S)
    assert closed.is_set() and several.ended == []


class _WaitsAndCloses(MapFunction):
    def map(self, value: str) -> str:
        return _wait(value)

    def close(self) -> None:
        _closed[0].set()


_closed: dict[int, threading.Event] = {}
_waits: dict[int, tuple[threading.Event, threading.Event]] = {}


def _wait(word: str) -> str:
    started, go_on = _waits[0]
    started.set()
    go_on.wait(WITHIN_S)
    return word


def test_nothing_is_left_of_a_group(group):
    several = group(2)
    folder = several.group._folder
    several.deploy(graph_of(counted, 2))
    several.run(["a"])
    assert [path.name for path in folder.iterdir()] == []  # All have met: nobody listens any more.
    several.close()
    assert not folder.exists() and several.losses == []


def test_processes_of_one_group_host_another_one_that_fails_and_ends_alone(group):
    host = group(2)
    host.deploy(graph_of(counted, 2))
    guests = Group(2, start=host.group.host)
    guests.deploy(graph_of(failing_at_bad, 3))
    both = threading.Thread(target=lambda: [host.run(["a", "b"] * 500) for _ in range(20)])
    both.start()
    assert [list(collected(guests.run(["a"])).values()) for _ in range(3)] == [[[("a", count)]] for count in (1, 2, 3)]
    both.join()
    guests.run(["bad"])
    assert guests.group.release()
    guests.deploy(graph_of(counted, 2))
    assert list(collected(guests.run(["a"])).values()) == [[("a", 1)]]
    guests.close()
    assert sorted(collected(host.run(["a", "b"])).values()) == [[("a", 10_001)], [("b", 10_001)]]
    assert host.losses == guests.losses == []


def test_guests_stay_when_the_region_of_their_hosts_has_ended(group):
    host = group(2)
    guests = Group(2, start=host.group.host)
    guests.deploy(graph_of(counted, 2))
    host.close()
    assert list(collected(guests.run(["a"])).values()) == [[("a", 1)]]  # The process is theirs until they end.
    guests.close()
    for worker in host.workers.values():
        worker.wait_for_guests()


def test_command_of_a_worker_holds_its_own_orders_only():
    orders = {(vertex, subtask): SubtaskOrder() for vertex in range(2) for subtask in range(10)}
    first = EpochCommand(1, 0, orders).by_worker(3)
    assert [sorted({subtask for _, subtask in each.orders}) for each in first] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    plain = EpochCommand(2, 0, orders, previous_epoch=1).by_worker(3)
    assert all(each.orders == {} for each in plain)
    checkpoint = EpochCommand(2, 0, orders, previous_epoch=1, is_checkpoint=True).by_worker(3)
    assert [len(each.orders) for each in checkpoint] == [8, 6, 6]


def test_stages_wait_only_for_workers_that_send_to_them():
    graph = graph_of(lambda stream: counted(stream.rebalance().map(str.upper).rescale().map(str.lower)), 4)
    deployment = deployment_of(graph)
    for worker in range(2):
        parts = stages_of(deployment, worker, 2)
        others = [(other, part) for other in range(2) for part in stages_of(deployment, other, 2)]
        told = {(other, part.number) for other, part in others if worker in part.notifies}
        awaited = {mark for part in parts for mark in part.awaits}
        assert awaited == told
        assert all((sender, stage) != (worker, stage) for sender, stage in awaited)


def test_control_messages_have_numbers_of_their_own():
    assert not {int(kind) for kind in Kind} & {ACKNOWLEDGEMENT, FAILURE}
