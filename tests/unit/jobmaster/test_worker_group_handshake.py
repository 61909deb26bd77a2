"""Who may join a group of workers, and how its members find each other."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from dataclasses import replace

import pytest
from free_ports import free_port
from worker_groups import ONE_MACHINE, OVER_TCP, WITHIN_S

from penstock.jobmaster.execution.worker_group import WorkerGroup, WorkerLostError
from penstock.runtime.connection import Address, HandshakeError, Listener, connect
from penstock.runtime.resident_worker import ResidentWorker


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
