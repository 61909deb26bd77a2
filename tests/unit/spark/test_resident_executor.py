"""Who starts and ends the workers of a region, without Spark: each worker is a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.slots import NoResourceAvailableError
from penstock.jobmaster.execution.stage_executor import EpochCancelledError
from penstock.jobmaster.execution.worker_group import WorkerGroup
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.resident_worker import ResidentWorker, WorkerPlace
from penstock.spark import resident_executor
from penstock.spark.resident_executor import ResidentExecutor
from penstock.spark.task_slots import SlotLedger
from penstock.testing.memory_folder import MemoryFolder

WITHIN_S = 30


class Threads:
    """Instead of a Spark job: runs as many of the workers as there is room for."""

    room = 100

    def __init__(self, context: object, group: WorkerGroup, *names: str) -> None:
        self._group = group
        places = group.places()[: self.room]
        self._threads = [threading.Thread(target=self._host, args=(place,)) for place in places]
        for thread in self._threads:
            thread.start()

    def _host(self, place: WorkerPlace) -> None:
        worker = ResidentWorker(place, end_process=lambda code: None)
        worker.run()
        worker.wait_for_guests()

    def end(self, is_patient: bool) -> None:
        self._group.close()
        self._group.hang_up()
        for thread in self._threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()


class Context:
    """What an executor asks a Spark context for."""

    master = "local[4]"

    def getConf(self) -> SimpleNamespace:
        return SimpleNamespace(getAll=list)


class Cluster:
    """How many slots there are, and executors for a job of parallelism 4 on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total = 4
        ledger = self.ledger = SlotLedger(lambda: self.total, {}, settled_s=0)
        monkeypatch.setattr(resident_executor, "slot_ledger", lambda context: ledger)
        monkeypatch.setattr(resident_executor, "ResidentJob", Threads)
        monkeypatch.setattr(resident_executor, "_LOOK_S", 0.01)
        monkeypatch.setattr(resident_executor, "_SHRUNK_S", 0.05)
        monkeypatch.setattr(Threads, "room", 100)
        self._monkeypatch = monkeypatch
        self.started: list[ResidentExecutor] = []
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)
        env.from_sequence(1, 3).map(str).print()
        self.graph = build_job_graph(env.get_stream_graph())

    def has_room_for(self, workers: int) -> None:
        self._monkeypatch.setattr(Threads, "room", workers)

    def executor(self, **settings: str) -> ResidentExecutor:
        config = Configuration()
        for key, value in settings.items():
            config.set_string(key.replace("_", "."), value)
        side = SimpleNamespace(
            context=Context(),
            context_for_workers=Context(),
            config=config,
            job_graph=self.graph,
            job_name="job",
            job_id="0" * 32,
            dependencies=SimpleNamespace(around=lambda pickled: pickled),
            take_output=lambda content, is_wanted: None,
        )
        self.started.append(ResidentExecutor(side))  # type: ignore[arg-type]
        return self.started[-1]

    def sibling(self, of: ResidentExecutor) -> ResidentExecutor:
        self.started.append(of.sibling())
        return self.started[-1]

    def deploy(self, executor: ResidentExecutor, on_loss: Callable[[], None] = lambda: None) -> int:
        """How many workers it has then."""
        executor.deploy(JobDeployment("0" * 32, self.graph), MemoryFolder(), on_loss)
        assert executor._group is not None
        return executor._group.workers


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    made = Cluster(monkeypatch)
    yield made
    for executor in made.started:
        executor.close()
    assert made.ledger._taken == 0


def test_region_without_a_slot_lives_with_another_and_restarts_when_its_processes_end(cluster):
    """The other one's function has not returned, for example: nothing is wrong with the guest, but it must not wait."""
    host = cluster.executor()
    guest = cluster.sibling(host)
    cluster.total = 1
    assert cluster.deploy(host) == 1
    lost = threading.Event()
    assert cluster.deploy(guest, lost.set) == 1
    host._end_workers(is_patient=False)
    assert lost.wait(WITHIN_S)
    with pytest.raises(JobExecutionError, match="the process that hosts it ends"):
        guest.run_epoch(EpochCommand(1, 0), [])
    guest.end_run()
    assert cluster.deploy(guest) == 1 and guest._slots == 1


def test_region_whose_host_has_just_ended_takes_its_slots(cluster, monkeypatch):
    first = cluster.executor()
    second = cluster.sibling(first)
    cluster.total = 1
    cluster.deploy(first)
    take = cluster.ledger.take

    def take_and_end_host(*arguments: object) -> int:
        taken = take(*arguments)
        if not taken:  # There is a host; but when it is to be chosen, it is there no more.
            first._end_workers()
        return taken

    monkeypatch.setattr(cluster.ledger, "take", take_and_end_host)
    assert cluster.deploy(second) == 1 and second._slots == 1


def test_ended_region_gives_its_slots_back_while_others_run(cluster):
    first = cluster.executor()
    second = cluster.sibling(first)
    cluster.deploy(first)
    cluster.deploy(second)
    assert (first._slots, second._slots) == (2, 2)
    first.end_run()
    first.end_region()
    assert cluster.ledger._taken == 2 and second.is_ready
    another_job = cluster.executor()
    assert cluster.deploy(another_job) == 2


def test_processes_of_an_ended_region_stay_as_long_as_others_live_in_them(cluster):
    host = cluster.executor()
    guests = [cluster.sibling(host), cluster.sibling(host)]
    cluster.total = 1
    cluster.deploy(host)
    lost = threading.Event()
    for guest in guests:
        assert cluster.deploy(guest, lost.set) == 1
    host.end_run()
    host.end_region()
    for guest in guests:
        guest.run_epoch(EpochCommand(1, 0), [])
        guest.end_run()
    guests[0].end_region()
    assert cluster.ledger._taken == 1 and guests[1].is_ready and not lost.is_set()
    guests[1].end_region()
    assert cluster.ledger._taken == 0


def test_nobody_moves_in_with_a_region_that_ends(cluster, monkeypatch):
    """It is chosen, and ends before the group of the guest is made: the guest must not wait for its processes."""
    first = cluster.executor()
    second = cluster.sibling(first)
    cluster.total = 1
    cluster.deploy(first)

    def end_and_make(*arguments: object) -> WorkerGroup:
        first._end_workers()
        return WorkerGroup(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(resident_executor, "WorkerGroup", end_and_make)
        with pytest.raises(JobExecutionError, match="were to host it have ended"):
            cluster.deploy(second)
    second.end_run()
    assert cluster.deploy(second) == 1 and second._slots == 1


def test_regions_that_were_lost_together_share_what_is_left(cluster):
    regions = [cluster.executor()]
    regions += [cluster.sibling(regions[0]), cluster.sibling(regions[0])]
    cluster.total = 6
    assert [cluster.deploy(region) for region in regions] == [2, 2, 2]
    cluster.total = 3
    for region in regions:
        region._group.lose("its executor is gone")
        region.end_run()
    assert [cluster.deploy(region) for region in regions] == [1, 1, 1]
    assert [region._slots for region in regions] == [1, 1, 1]


def test_ended_region_counts_no_more_among_those_that_wait(cluster):
    first = cluster.executor()
    second = cluster.sibling(first)
    first.end_region()
    assert cluster.deploy(second) == 4


def test_workers_for_which_there_is_no_room_any_more_are_not_waited_for(cluster, monkeypatch):
    executor = cluster.executor()
    cluster.has_room_for(2)
    wait = WorkerGroup.wait_until_registered

    def lose_executors_and_wait(group: WorkerGroup, timeout_s: float) -> bool:
        cluster.total = 2
        return wait(group, timeout_s)

    monkeypatch.setattr(WorkerGroup, "wait_until_registered", lose_executors_and_wait)
    with pytest.raises(JobExecutionError, match="executors were lost while 4 workers were to start"):
        cluster.deploy(executor)
    executor.end_run()
    assert cluster.deploy(executor) == 2


def test_workers_that_do_not_come_are_reported_with_required_and_available(cluster):
    executor = cluster.executor(slot_request_timeout="2 s")
    cluster.has_room_for(3)
    with pytest.raises(NoResourceAvailableError, match="required 4, available 3"):
        cluster.deploy(executor)
    executor.end_run()


def test_cancellation_while_the_group_is_made_is_heard(cluster, monkeypatch):
    """Nobody could notify the group, and its workers never come."""
    executor = cluster.executor()
    cluster.has_room_for(0)

    def cancel_and_make(*arguments: object) -> WorkerGroup:
        executor.cancel()
        return WorkerGroup(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(resident_executor, "WorkerGroup", cancel_and_make)
    with pytest.raises(EpochCancelledError):
        cluster.deploy(executor)


@pytest.mark.parametrize("settings", [{"heartbeat_interval": "1 min"}, {"heartbeat_interval": "0 ms"}])
def test_heart_that_beats_too_seldom_is_refused(cluster, settings):
    with pytest.raises(ConfigurationError, match="the timeout no shorter than it"):
        cluster.executor(**settings)
