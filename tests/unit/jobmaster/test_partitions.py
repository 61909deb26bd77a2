"""Two workers that no longer reach each other, while the driver reaches both."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest
from partitions import cut_off, needs_partitions
from worker_groups import WITHIN_S, Group, counted, graph_of

from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerLostError
from penstock.runtime import resident_worker

SETTINGS = GroupSettings(host="127.0.0.1")
CUT_OFF_S = 3
"""Hearts need not beat as fast: the driver hears of both workers in any case."""


class GroupOnTwoMachines(Group):
    """Its workers do not see each other's files: they meet over TCP."""

    def _start(self, places):
        super()._start([replace(place, folder="/nowhere") for place in places])


@pytest.fixture
def apart(monkeypatch):
    monkeypatch.setattr(resident_worker, "_CUT_OFF_TIMEOUTS", CUT_OFF_S * 1000 / SETTINGS.heartbeat_timeout_ms)
    several = GroupOnTwoMachines(2, SETTINGS)
    several.deploy(graph_of(counted, 2))
    several.lost = threading.Event()
    several.group._on_loss = several.lost.set
    yield several
    several.close()


def ends_between(several):
    """The two ends of the connection between both workers."""
    return [several.workers[0]._peers[1]._socket, several.workers[1]._peers[0]._socket]


@needs_partitions
@pytest.mark.parametrize(("is_busy", "ends"), [(True, (0, 1)), (True, (1,)), (False, (0,))])
def test_partition_between_two_workers_is_noticed(apart, is_busy, ends):
    apart.run([f"word {number}" for number in range(10)])
    for end in ends:
        cut_off(ends_between(apart)[end])
    if is_busy:
        with pytest.raises(WorkerLostError, match=r"worker [01] has no connection to worker [01]: "):
            apart.run([f"word {number}" for number in range(1000)])
    assert apart.lost.wait(WITHIN_S)
    with pytest.raises(WorkerLostError, match=r"worker [01] has no connection to worker [01]: "):
        apart.group.check()


def test_workers_that_meet_over_tcp_watch_each_other(apart):
    for end in ends_between(apart):
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
