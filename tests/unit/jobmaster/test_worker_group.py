"""A driver and workers that stay, without Spark: each worker is a thread of this process, with real sockets."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from free_ports import free_port
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.folders import LocalFolder
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup, WorkerLostError, places_near
from penstock.runtime import resident_worker
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.connection import Address, HandshakeError, Kind, Listener, connect
from penstock.runtime.local_backups import BackupSettings, LocalBackups
from penstock.runtime.protocol import EpochCommand, SubtaskOrder, TaskAck
from penstock.runtime.resident_worker import ResidentWorker, WorkerPlace
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, FROM_DRIVER, Row
from penstock.runtime.saved_state import FileChain
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.worker import Worker, stages_of
from penstock.testing.memory_folder import MemoryFolder

WITHIN_S = 30
ONE_MACHINE = GroupSettings()
OVER_TCP = GroupSettings(host="127.0.0.1")


def graph_of(build: Callable, parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    build(env.socket_text_stream("nowhere", 1))._sink("collected", CollectSinkDescription("collected"))
    return build_job_graph(env.get_stream_graph())


def counted(stream):
    return stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def counted_behind_two_exchanges(stream):
    return counted(stream.rebalance().map(lambda word: word.upper()).rescale().map(lambda word: word.lower()))


def failing_at_bad(stream):
    def check(word: str) -> str:
        if word == "bad":
            raise ValueError("a bad word")
        return word

    return counted(stream.rebalance().map(check))


class Group:
    """A group whose workers are threads."""

    def __init__(
        self,
        workers: int,
        group_settings: GroupSettings = ONE_MACHINE,
        start: Callable[[list[WorkerPlace]], None] | None = None,
        former_hosts: tuple[str, ...] = (),
    ) -> None:
        self.losses: list[bool] = []
        self.ended: list[int] = []
        self.group = WorkerGroup(workers, group_settings, lambda: self.losses.append(True))
        self.workers: dict[int, ResidentWorker] = {}
        self._epoch = self._previous = 0
        self.threads: list[threading.Thread] = []
        (start or self._start)(self.group.places())
        assert self.group.wait_until_registered(WITHIN_S)
        self.group.introduce(WITHIN_S, former_hosts)

    def _start(self, places: list[WorkerPlace]) -> None:
        self.threads = [threading.Thread(target=self._host, args=(at,), name=f"called {at.index}") for at in places]
        for thread in self.threads:
            thread.start()

    def _host(self, place: WorkerPlace) -> None:
        worker = self.workers[place.index] = ResidentWorker(place, end_process=self.ended.append)
        worker.run()

    def deploy(self, graph: JobGraph) -> list[Row]:
        self._previous = 0
        return self.group.deploy(encode_in_driver(deployment_of(graph)), MemoryFolder())

    def run(self, records: list[str], is_report: bool = False) -> list[Row]:
        self._epoch += 1
        command = EpochCommand(self._epoch, 0, previous_epoch=self._previous, is_report=is_report)
        rows = self.group.run_epoch(command, [source_row(records)])
        self._previous = self._epoch
        return rows

    def close(self) -> None:
        self.group.close()
        for thread in self.threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()
        self.group.hang_up()


def deployment_of(graph: JobGraph) -> JobDeployment:
    return JobDeployment("0" * 32, graph)


def source_row(records: list[str]) -> Row:
    return Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(records, False).encode())


def collected(rows: list[Row]) -> dict[int, list]:
    """What each subtask of the sink has got, in order."""
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    return {ack.subtask: values for ack in acks for values in ack.outcome.collected.values()}


def acknowledged(rows: list[Row]) -> set[tuple[int, int]]:
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    assert len({(ack.vertex, ack.subtask) for ack in acks}) == len(acks)
    return {(ack.vertex, ack.subtask) for ack in acks}


def alone(graph: JobGraph, epochs: list[list[str]]) -> list[dict[int, list]]:
    """What a single worker without sockets gives for each epoch."""
    worker = Worker(deployment_of(graph), MemoryFolder())
    results = []
    for number, records in enumerate(epochs, start=1):
        command = EpochCommand(number, 0, previous_epoch=number - 1)
        results.append(collected(list(worker.run_epoch(command, [source_row(records)]))))
    worker.close()
    return results


@pytest.fixture
def group() -> Iterator[Callable[..., Group]]:
    started: list[Group] = []

    def start(workers: int, group_settings: GroupSettings = ONE_MACHINE) -> Group:
        started.append(Group(workers, group_settings))
        return started[-1]

    yield start
    for each in started:
        each.close()


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


def test_job_that_cannot_be_loaded_is_told_as_a_failure(group):
    several = group(2)
    rows = several.group.deploy(b"no pickle", MemoryFolder())
    assert "could not be loaded in worker" in pickle.loads(rows[0].chunk).task_name


@pytest.mark.parametrize("victim", [0, 1])
def test_worker_that_goes_is_told_by_number_and_ends_the_others(group, victim):
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
    several.workers[1]._control.tell_unless_busy = lambda kind: None
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


def test_failure_of_the_exchange_is_told_as_such(group, monkeypatch):
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
    """Otherwise it would wait for ever for a mark that nobody reads."""
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


def test_threads_of_workers_are_told_while_a_function_runs(group):
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


def test_who_does_not_know_the_secret_is_turned_away():
    group = WorkerGroup(1, OVER_TCP, lambda: None)
    [place] = group.places()
    with pytest.raises((HandshakeError, EOFError)):
        ResidentWorker(replace(place, secret=b"guessed"))
    with socket.create_connection((place.driver.host, place.driver.port)) as stranger:
        stranger.sendall(pickle.dumps(_Harmful()) + b"\0" * 100)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(100) == b""  # It is hung up on.
    assert group.registered() == 0
    group.close()


class _Harmful:
    def __reduce__(self):
        return pytest.fail, ("something was unpickled",)


def test_worker_of_an_old_group_cannot_join_a_new_one():
    old, new = WorkerGroup(1, ONE_MACHINE, lambda: None), WorkerGroup(1, ONE_MACHINE, lambda: None)
    [place] = old.places()
    with pytest.raises((HandshakeError, OSError)):
        ResidentWorker(replace(place, driver=new.places()[0].driver))
    old.close()
    new.close()


def test_workers_that_cannot_reach_each_other_say_who_and_where():
    """A firewall between executors, for example. Who is not reached is not gone."""
    group = WorkerGroup(2, OVER_TCP, lambda: None)
    workers = [ResidentWorker(place, end_process=lambda code: None) for place in group.places()]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    assert group.wait_until_registered(WITHIN_S)
    port = free_port()
    member = group._members[0]
    member.hello = replace(member.hello, address=Address(None, "127.0.0.1", port))
    told = rf"worker 1 has no connection to worker 0: 127.0.0.1:{port} cannot be reached: .*refused"
    with pytest.raises(WorkerLostError, match=told):
        group.introduce(WITHIN_S)
    group.close()
    for thread in threads:
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def test_listener_that_only_pretends_is_found_out():
    listener = Listener(b"another secret", None, "127.0.0.1")
    listener.serve(lambda connection: None)
    group = WorkerGroup(1, OVER_TCP, lambda: None)
    [place] = group.places()
    address = replace(place.driver, path=None, port=listener.port)
    with pytest.raises(HandshakeError, match="does not belong to this run"):
        connect(address, place.secret)
    listener.close()
    group.close()


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
        told = {(other, part.number) for other, part in others if worker in part.tells}
        awaited = {mark for part in parts for mark in part.awaits}
        assert awaited == told
        assert all((sender, stage) != (worker, stage) for sender, stage in awaited)


def test_control_messages_have_numbers_of_their_own():
    assert not {int(kind) for kind in Kind} & {ACKNOWLEDGEMENT, FAILURE}


def test_workers_that_are_started_anew_restore_from_copies_of_their_host(tmp_path):
    graph, storage = graph_of(counted, 2), MemoryFolder()
    settings = replace(ONE_MACHINE, backups=BackupSettings("0" * 32, str(tmp_path)))
    first = Group(2, settings)
    first.group.deploy(encode_in_driver(deployment_of(graph)), storage)
    rows = first.group.run_epoch(EpochCommand(1, 0, is_checkpoint=True), [source_row(["a", "b", "b"])])
    first.close()
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    written = {(ack.vertex, ack.subtask): ack.handle for ack in acks if ack.handle is not None}
    for handle in written.values():
        storage.delete(handle.name)  # What is not restored from the copies is not restored.
    orders = {at: SubtaskOrder((FileChain(storage, (handle,), at[1]),)) for at, handle in written.items()}
    second = Group(2, settings)
    second.group.deploy(encode_in_driver(deployment_of(graph)), storage)
    rows = second.group.run_epoch(EpochCommand(2, 0, orders, restorable_epoch=1), [source_row(["a", "b"])])
    assert sorted(value for values in collected(rows).values() for value in values) == [("a", 2), ("b", 3)]
    assert list(tmp_path.rglob("v*-e1-*"))
    second.group.close(is_over=True)
    for thread in second.threads:
        thread.join(WITHIN_S)
    second.close()
    assert list(tmp_path.rglob("v*")) == []  # The region does not start again.


# --- hosts -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcx")), max_size=8))
def test_as_many_workers_as_can_be_are_on_the_host_they_were_on(hosts):
    former, now = [each for each, _ in hosts], [each for _, each in hosts]
    places = places_near(now, former)
    assert sorted(places) == list(range(len(now)))
    kept = sum(now[at] == former[place] for place, at in enumerate(places))
    assert kept == (Counter(now) & Counter(former)).total()
    assert all(places[at] == at for at in range(len(now)) if now[at] == former[at]), "who need not move does not"


def test_with_another_number_of_workers_nobody_moves():
    assert places_near(["a", "b"], []) == places_near(["a", "b"], ["b"]) == [0, 1]


def test_workers_take_the_places_of_those_that_were_on_their_hosts(monkeypatch):
    hosts = {"called 0": "new", "called 1": "c", "called 2": "b"}
    monkeypatch.setattr(resident_worker.platform, "node", lambda: hosts.get(threading.current_thread().name, "driver"))
    group = Group(3, former_hosts=("a", "b", "c"))
    assert group.group.hosts() == ("new", "b", "c")
    graph, epochs = graph_of(counted_behind_two_exchanges, 3), [["to", "be", "or"], ["not", "to", "be"]]
    assert group.deploy(graph) == []
    assert [collected(group.run(records)) for records in epochs] == alone(graph, epochs)
    group.close()


def test_who_survives_restores_from_its_own_hosts_copies_although_it_calls_first(monkeypatch, tmp_path):
    """Each host has a disk of its own. One is lost with its host, and the storage forgets what the other one has."""
    hosts = {"called 0": "a", "called 1": "b"}

    def host() -> str:
        return hosts.get(threading.current_thread().name, "driver")

    monkeypatch.setattr(resident_worker.platform, "node", host)
    monkeypatch.setattr(
        resident_worker, "LocalBackups", lambda given: LocalBackups(replace(given, folder=str(tmp_path / host())))
    )
    for name in ("a", "b", "new"):
        (tmp_path / name).mkdir()
    graph, storage = graph_of(counted, 2), LocalFolder(str(tmp_path / "storage"))
    storage.within("shared").make()
    settings = replace(ONE_MACHINE, backups=BackupSettings("0" * 32))
    with contextlib.closing(Group(2, settings)) as first:
        former = first.group.hosts()
        first.group.deploy(encode_in_driver(deployment_of(graph)), storage)
        rows = first.group.run_epoch(EpochCommand(1, 0, is_checkpoint=True), [source_row(list("abcde"))])
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    written = {(ack.vertex, ack.subtask): ack.handle for ack in acks if ack.handle is not None}
    assert {subtask for _, subtask in written} == {0, 1}
    for (_, subtask), handle in written.items():
        if subtask == 1:
            storage.delete(handle.name)
    hosts.update({"called 0": "b", "called 1": "new"})
    orders = {at: SubtaskOrder((FileChain(storage, (handle,), at[1]),)) for at, handle in written.items()}
    with contextlib.closing(Group(2, settings, former_hosts=former)) as second:
        assert second.group.hosts() == ("new", "b")
        second.group.deploy(encode_in_driver(deployment_of(graph)), storage)
        rows = second.group.run_epoch(EpochCommand(2, 0, orders, restorable_epoch=1), [source_row(list("abcde"))])
    assert [pickle.loads(row.chunk).message for row in rows if row.vertex == FAILURE] == []
    assert sorted(value for values in collected(rows).values() for value in values) == [(word, 2) for word in "abcde"]
