"""Processes that run jobs meet in a folder of sockets; what killed ones leave there goes."""

from __future__ import annotations

import socket

import pytest

from penstock.rest import sockets

JOB = "0" * 32


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "folder", lambda: tmp_path)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_process_that_starts_removes_what_killed_ones_have_left(folder):
    killed = sockets.listen("driver-killed")
    killed.announce(JOB)
    killed.listener.close()  # The files stay, as after a kill.
    alive = sockets.listen("driver-alive")
    assert names_in(folder) == ["driver-alive"]
    alive.listener.close()


def test_sockets_of_living_processes_stay(folder):
    first = sockets.listen("driver-first")
    first.announce(JOB)
    second = sockets.listen("driver-second")
    assert names_in(folder) == [JOB, "driver-first", "driver-second"]
    first.listener.close()
    second.listener.close()


def test_a_process_that_is_too_busy_to_accept_is_alive(folder):
    path = folder / "driver-busy"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(0)
    waiting = []
    while len(waiting) < 5:  # More than it queues: the last ones are told to come again.
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(str(path))
    assert sockets.is_alive(path) and path.exists()
    for each in (*waiting, listener):
        each.close()
