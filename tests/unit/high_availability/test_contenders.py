"""Two job managers in this process, each with its REST API: who answers, and what becomes of jobs."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.cluster import contender
from penstock.cluster.contender import Contender
from penstock.cluster.high_availability.job_records import FencedJob
from penstock.cluster.high_availability.services import HighAvailability
from penstock.cluster.job_bundle import bundled
from penstock.cluster.leader import Leader
from penstock.cluster.leader_lookup import JobManagers
from penstock.cluster.remote_submission import upload
from penstock.common import Configuration
from penstock.common.exceptions import LeadershipLostError
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.job_graph import build_job_graph
from penstock.rest.client import LEADERSHIP, Address, RestClient, RestClientError
from penstock.rest.security.access import ServerAccess
from penstock.rest.security.access_token import own_token
from penstock.rest.server import LazyServer

WITHIN_S = 60
NUMBERS = 2000


class Manager:
    """Leads when nobody else does; the lease never expires here, it is only given back."""

    def __init__(self, folder: Path, name: str, settings: dict[str, str]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.settings = {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": str(folder / "ha"),
            "penstock.high-availability.lease-duration": "1 h",
            "penstock.high-availability.renew-interval": "100 ms",
            "execution.target": "inline",
            **settings,
        }
        config = Configuration.from_dict(self.settings)
        high_availability = HighAvailability.of(config)
        assert high_availability is not None
        self.was_told_to_end = threading.Event()
        self.contender = Contender(config, high_availability, folder / name, self.address, self.was_told_to_end.set)
        access = ServerAccess.to(self._listener, config)
        self._server = LazyServer(self._listener, lambda: self.contender.app, access).start()
        self.contender.contend()
        self._is_closed = False

    @property
    def rest(self) -> RestClient:
        return RestClient(Address.parse(self.address))

    def close(self) -> None:
        """As when the process ends in an orderly way, but it still answers."""
        if not self._is_closed:
            self._is_closed = True
            self.contender.close()

    def end(self) -> None:
        self.close()
        self._server.close(5)
        self._listener.close()

    def raw(self, path: str) -> tuple[int, str | None, str]:
        connection = http.client.HTTPConnection(self.address, timeout=WITHIN_S)
        with contextlib.closing(connection):
            token = own_token(int(self.address.rpartition(":")[2]))
            assert token is not None
            connection.request("GET", path, headers={"Authorization": f"Bearer {token.secret}"})
            response = connection.getresponse()
            return response.status, response.headers["Location"], response.read().decode()


def eventually(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


StartManager = Callable[..., Manager]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartManager]:
    with contextlib.ExitStack() as stack:

        def started(name: str, settings: dict[str, str] | None = None) -> Manager:
            manager = Manager(tmp_path, name, settings or {})
            stack.callback(manager.end)
            return manager

        yield started


@pytest.fixture
def managers(start: StartManager) -> tuple[Manager, Manager]:
    """The leader, and one that stands by."""
    a = start("a")
    eventually(lambda: a.contender.leader)
    return a, start("b")


def environment(tmp_path: Path, **settings: str) -> StreamExecutionEnvironment:
    """A job that takes a while, in epochs of a few elements, and writes numbers to files."""
    given = {
        "execution.checkpointing.interval": "20 ms",
        "penstock.epoch.interval": "10 ms",
        "penstock.epoch.max-records": "10",
    }
    config = Configuration.from_dict({**given, **{key.replace("_", "."): value for key, value in settings.items()}})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    env.from_sequence(1, NUMBERS).map(lambda number: number).sink_to(sink)
    return env


@contextlib.contextmanager
def bundle_of(env: StreamExecutionEnvironment):
    graph = build_job_graph(env.get_stream_graph(job_name="numbers"))
    with bundled(graph, env.get_configuration(), JobDependencies()) as bundle:
        yield bundle


def submit(env: StreamExecutionEnvironment, manager: Manager) -> str:
    with bundle_of(env) as bundle:
        upload(manager.rest, bundle)
        return manager.rest.post("/jobs", bundle.submission.to_json())["jobid"]


def shown(tmp_path: Path) -> list[int]:
    files = [path for path in (tmp_path / "out").rglob("part-*")]
    return sorted(int(line) for path in files for line in path.read_text().split())


def has_checkpoint(tmp_path: Path) -> bool:
    return bool(list((tmp_path / "ha" / "default" / "checkpoints").glob("*/chk-*/_metadata")))


def status_of(job: str, manager: Manager) -> str | None:
    try:
        return manager.rest.get(f"/jobs/{job}/status")["status"]
    except RestClientError:
        return None


# --- who answers -----------------------------------------------------------------------------------------------------


def test_one_that_stands_by_refers_to_the_leader(managers):
    a, b = managers
    status, location, _ = b.raw("/jobs/overview?x=1")
    assert (status, location) == (307, f"http://{a.address}/jobs/overview?x=1")
    assert b.rest.get("/jobs/overview") == {"jobs": []}


def test_everyone_says_who_leads(managers):
    a, b = managers
    told = a.rest.get("/v1" + LEADERSHIP)
    assert (told["role"], told["leader"], told["leadership"]) == ("leader", a.address, 1)
    told = b.rest.get(LEADERSHIP)
    assert (told["role"], told["leader"], told["leadership"]) == ("standby", a.address, None)


def test_one_that_stands_by_without_a_leader_says_so(managers):
    a, b = managers
    b.close()
    a.close()
    assert b.raw("/jobs/overview")[0] == 503
    assert "stands by, and none is known to lead now" in b.raw("/jobs/overview")[2]


def test_leadership_that_begins_while_the_job_manager_ends_is_given_up(start, monkeypatch):
    arrived, released, suspended = threading.Event(), threading.Event(), []

    class SlowLeader(Leader):
        def recover(self) -> None:
            arrived.set()
            assert released.wait(WITHIN_S)
            super().recover()

        def suspend(self, reason: LeadershipLostError) -> None:
            suspended.append(str(reason))
            super().suspend(reason)

    monkeypatch.setattr(contender, "Leader", SlowLeader)
    manager = start("a")
    assert arrived.wait(WITHIN_S)
    closing = threading.Thread(target=manager.close)
    closing.start()
    closing.join(0.2)
    released.set()
    closing.join(WITHIN_S)
    assert (manager.contender.leader, suspended) == (None, ["the job manager ends"])


def test_job_that_could_not_be_stored_is_refused_and_may_be_submitted_again(managers, tmp_path, monkeypatch):
    a, _ = managers
    failures = [OSError("stale file handle")]
    take = FencedJob.take

    def failing(self: FencedJob) -> None:
        take(self)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(FencedJob, "take", failing)
    with bundle_of(environment(tmp_path)) as bundle:
        upload(a.rest, bundle)
        submission = bundle.submission.to_json()
        with pytest.raises(RestClientError, match="stale file handle"):
            a.rest.post("/jobs", submission)
        job = a.rest.post("/jobs", submission)["jobid"]
    assert status_of(job, a) is not None, "it runs"


def test_leader_is_found_among_several_addresses(managers):
    a, b = managers
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        dead = f"127.0.0.1:{free.getsockname()[1]}"
    config = Configuration.from_dict({})
    for named in (f"{a.address},{b.address}", f"{b.address},{a.address}", f"{dead}, {b.address}"):
        assert str(JobManagers.of(config, named).leader()) == a.address
    with pytest.raises(RestClientError, match=rf"no job manager leads now: nobody answers at {dead}"):
        JobManagers.of(config, f"{dead},{dead}").leader()
    a.close()
    eventually(lambda: b.contender.leader)
    assert str(JobManagers.of(config, f"{a.address},{b.address}").leader()) == b.address


def test_leader_is_found_by_the_folder_that_job_managers_share(managers):
    a, b = managers
    known = JobManagers.of(Configuration.from_dict(b.settings))
    assert str(known.leader()) == a.address
    b.close()
    a.close()
    with pytest.raises(RestClientError, match="no job manager leads now, according to"):
        known.leader()


def test_job_manager_without_others_is_taken_as_it_is():
    assert JobManagers.of(Configuration.from_dict({})) is None
    named = JobManagers.of(Configuration.from_dict({"rest.address": "river", "rest.port": "8082"}))
    assert (str(named.leader()), named.may_change) == ("river:8082", False)
    assert JobManagers.of(Configuration.from_dict({"rest.address": "a:1,b:2"})).addresses == (
        Address(host="a", port=1),
        Address(host="b", port=2),
    )


# --- jobs ------------------------------------------------------------------------------------------------------------


def test_job_continues_at_the_next_leader_with_its_id(managers, tmp_path):
    a, b = managers
    job = submit(environment(tmp_path), b)
    eventually(lambda: has_checkpoint(tmp_path))
    a.close()
    eventually(lambda: status_of(job, b) == "FINISHED")
    assert shown(tmp_path) == list(range(1, NUMBERS + 1))
    told = b.rest.get(f"/jobs/{job}/checkpoints")
    assert told["counts"]["restored"] == 1 and told["counts"]["failed"] == 0
    eventually(lambda: list((tmp_path / "ha" / "default" / "jobs").iterdir()) == [])


def test_ended_jobs_are_shown_by_the_next_leader(managers, tmp_path):
    a, b = managers
    job = submit(environment(tmp_path), a)
    eventually(lambda: status_of(job, a) == "FINISHED")
    a.close()
    eventually(lambda: b.contender.leader)
    assert status_of(job, b) == "FINISHED"


def test_submission_that_is_repeated_runs_once(managers, tmp_path):
    a, _ = managers
    with bundle_of(environment(tmp_path)) as bundle:
        upload(a.rest, bundle)
        jobs = {a.rest.post("/jobs", bundle.submission.to_json())["jobid"] for _ in range(2)}
    (job,) = jobs
    eventually(lambda: status_of(job, a) == "FINISHED")
    assert shown(tmp_path) == list(range(1, NUMBERS + 1))


def test_former_leader_takes_no_jobs_and_says_where_they_go(managers, tmp_path):
    a, _ = managers
    HighAvailability.of(Configuration.from_dict(a.settings)).take_over(2)
    with pytest.raises(RestClientError, match="another process has leadership 2 now; submit the job there") as told:
        submit(environment(tmp_path), a)
    assert told.value.status == 503


def test_job_that_comes_while_the_leadership_ends_is_left_to_the_next_leader(managers, tmp_path):
    a, b = managers
    cluster = a.contender.leader.cluster
    cluster.suspend(LeadershipLostError("this one was silent for too long"), WITHIN_S)
    with bundle_of(environment(tmp_path)) as bundle:
        upload(a.rest, bundle)
        with pytest.raises(RestClientError, match="silent for too long; submit the job there"):
            a.rest.post("/jobs", bundle.submission.to_json())
        a.close()
        eventually(lambda: status_of(str(bundle.submission.job_id), b) == "FINISHED")
    assert shown(tmp_path) == list(range(1, NUMBERS + 1))


def test_job_that_cannot_be_gone_on_with_is_tried_again(managers, tmp_path):
    a, b = managers
    job = submit(environment(tmp_path), a)
    eventually(lambda: has_checkpoint(tmp_path))
    stored = tmp_path / "ha" / "default" / "jobs" / job
    graph = stored / f"blob-{json.loads((stored / 'submission').read_text())['graph']}"
    graph.rename(tmp_path / "away")
    a.close()
    eventually(lambda: b.contender.leader)
    cluster = b.contender.leader.cluster
    assert status_of(job, b) is None and cluster.recover() == [job]
    (tmp_path / "away").rename(graph)
    assert cluster.recover() == []
    eventually(lambda: status_of(job, b) == "FINISHED")
    assert shown(tmp_path) == list(range(1, NUMBERS + 1))


def test_job_that_ends_with_its_client_ends_when_the_client_does_not_follow_it(managers, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.cluster.session_cluster.SessionCluster.client_comes_within_s", 0.0)
    a, b = managers
    env = environment(tmp_path)
    env.get_configuration().set_string("execution.shutdown-on-attached-exit", "true")
    job = submit(env, a)
    eventually(lambda: has_checkpoint(tmp_path))
    a.close()
    eventually(lambda: status_of(job, b) == "CANCELED")


def test_job_manager_that_cannot_lead_is_told_to_end(start, tmp_path):
    (tmp_path / "ha" / "default").mkdir(parents=True)
    (tmp_path / "ha" / "default" / "fence").touch()  # A file where a folder has to be.
    a = start("a")
    assert a.was_told_to_end.wait(WITHIN_S)
    assert isinstance(a.contender.failure, OSError) and a.contender.leader is None


def test_leadership_that_is_over_before_it_begins_does_no_harm(start):
    a = start("a")
    eventually(lambda: a.contender.leader)
    a.contender._revoked()
    HighAvailability.of(Configuration.from_dict(a.settings)).take_over(5)
    a.contender._granted(4)
    assert a.contender.leader is None and a.contender.failure is None


def test_folder_that_remembers_other_leaderships_is_reported(start, tmp_path, monkeypatch):
    monkeypatch.setattr(Contender, "revoked_within_s", 0.1)
    folder = tmp_path / "ha" / "default" / "fence"
    folder.mkdir(parents=True)
    (folder / f"{4294967296:020d}").touch()
    a = start("a")
    assert a.was_told_to_end.wait(WITHIN_S)
    assert "remembers a later leadership than 1, which filesystem has just given" in str(a.contender.failure)


@pytest.mark.slow
def test_job_continues_at_the_leader_that_zookeeper_elects(start, zookeeper, tmp_path):
    settings = {
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": f"127.0.0.1:{zookeeper.port}",
        "high-availability.zookeeper.path.root": "/jobs-go-on",
    }
    a = start("a", settings)
    eventually(lambda: a.contender.leader)
    b = start("b", settings)
    job = submit(environment(tmp_path), a)
    eventually(lambda: has_checkpoint(tmp_path))
    before = a.rest.get(LEADERSHIP)["leadership"]
    a.close()
    eventually(lambda: status_of(job, b) == "FINISHED")
    assert shown(tmp_path) == list(range(1, NUMBERS + 1))
    assert b.rest.get(LEADERSHIP)["leadership"] > before
