"""Workers that start again on hosts where there are copies of their state."""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from worker_groups import (
    ONE_MACHINE,
    WITHIN_S,
    Group,
    alone,
    collected,
    counted,
    counted_behind_two_exchanges,
    deployment_of,
    graph_of,
    source_row,
)

from penstock.checkpoint.folders import LocalFolder
from penstock.jobmaster.execution.worker_group import places_near
from penstock.runtime import resident_worker
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.local_backups import BackupSettings, LocalBackups
from penstock.runtime.protocol import EpochCommand, SubtaskOrder, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE
from penstock.runtime.saved_state import FileChain
from penstock.testing.memory_folder import MemoryFolder


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
