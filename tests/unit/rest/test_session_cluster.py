"""A session cluster in this process, whose jobs run without Spark; clients reach it over TCP as they always do."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster import session_cluster
from penstock.cluster.job_bundle import bundled
from penstock.cluster.remote_submission import upload
from penstock.common.exceptions import (
    InvalidProgramError,
    JobExecutionError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.accumulators import IntCounter
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.functions import RichMapFunction
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.dependencies.shipped_modules import ShippedModules
from penstock.rest.client import RestClientError


def test_printed_lines_come_back_to_the_client(cluster, capsys):
    env = cluster.environment()
    env.from_collection(["river", "rain"]).map(str.upper).print()
    result = env.execute("shouting")
    assert capsys.readouterr().out == "RIVER\nRAIN\n"
    (job,) = cluster.rest.get("/jobs/overview")["jobs"]
    assert (job["jid"], job["name"], job["state"]) == (str(result.get_job_id()), "shouting", "FINISHED")


def test_output_that_cannot_be_written_here_is_reported_as_such(cluster, monkeypatch):
    class ClosedPipe(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    env = cluster.environment()
    env.from_collection(["river"]).print()
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    with pytest.raises(JobExecutionError, match=r"what it prints cannot be written here .*Broken pipe.*penstock list"):
        env.execute("shouting")


def test_collected_values_come_back_to_the_client(cluster):
    with cluster.environment().from_collection([1, 2, 3]).map(lambda x: x * 10).execute_and_collect() as values:
        assert list(values) == [10, 20, 30]


class Counting(RichMapFunction):
    def open(self, runtime_context):
        self.seen = IntCounter()
        runtime_context.add_accumulator("seen", self.seen)

    def map(self, value):
        self.seen.add(1)
        return value


def test_accumulators_come_back_with_the_result(cluster):
    env = cluster.environment()
    env.from_collection([1, 2, 3]).map(Counting()).print()
    assert env.execute().get_accumulator_result("seen") == 3


def test_failure_is_raised_in_the_client_as_it_was_there_and_others_continue(cluster, capsys):
    failing, good = cluster.environment(), cluster.environment()
    failing.from_collection([1, 0]).map(lambda x: 1 // x).name("dividing").print()
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        failing.execute("failing")
    assert caught.value.operator == "dividing"
    good.from_collection([1]).print()
    good.execute("good")
    states = {job["name"]: job["state"] for job in cluster.rest.get("/jobs/overview")["jobs"]}
    assert states == {"failing": "FAILED", "good": "FINISHED"}


def test_detached_job_prints_to_the_log_of_the_job_manager(cluster, capsys, eventually):
    env = cluster.environment(execution_attached="false")
    env.from_collection(["river"]).print()
    result = env.execute("detached")
    job = str(result.get_job_id())
    with pytest.raises(JobExecutionError, match="detached mode"):
        result.get_net_runtime()
    eventually(lambda: cluster.rest.get(f"/jobs/{job}/status") == {"status": "FINISHED"})
    assert "river\n" in capsys.readouterr().out
    with pytest.raises(RestClientError, match="no output of job"):
        cluster.rest.open("GET", f"/jobs/{job}/output")


def test_detached_job_cannot_be_collected_from(cluster):
    env = cluster.environment(execution_attached="false")
    with pytest.raises(UnsupportedFeatureError, match="nobody would get the values of a detached job"):
        env.from_collection([1]).execute_and_collect()


def waiting_job(cluster: Any, stack: contextlib.ExitStack, **settings: str) -> Any:
    """A job that reads from a socket, and the connection by which it does."""
    server = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
    server.settimeout(30)
    env = cluster.environment(**settings)
    env.socket_text_stream("localhost", server.getsockname()[1]).print()
    client = env.execute_async("waiting")
    return client, stack.enter_context(contextlib.closing(server.accept()[0]))


def test_client_of_a_running_job_asks_and_steers_it(cluster, tmp_path, eventually):
    with contextlib.ExitStack() as stack:
        client, connection = waiting_job(cluster, stack)
        connection.sendall(b"river\n")
        eventually(lambda: client.get_job_status().result().name == "RUNNING")
        assert client.get_accumulators().result() == {}
        path = client.trigger_savepoint(str(tmp_path / "savepoints")).result(30)
        assert (Path(path.removeprefix("file://")) / "_metadata").is_file()
        client.cancel().result(30)
        assert client.get_job_status().result().name == "CANCELED"
        with pytest.raises(JobExecutionError, match="was cancelled"):
            client.get_job_execution_result().result(30)


def test_job_that_ends_with_its_client_is_cancelled_when_the_client_hangs_up(cluster, eventually):
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
        server.settimeout(30)
        env = cluster.environment()
        env.get_configuration().set_string("execution.shutdown-on-attached-exit", "true")
        env.socket_text_stream("localhost", server.getsockname()[1]).print()
        with bundle_of(env) as bundle:
            upload(cluster.rest, bundle)
            job = cluster.rest.post("/jobs", bundle.submission.to_json())["jobid"]
        stack.enter_context(contextlib.closing(server.accept()[0]))
        for _ in range(2):
            cluster.rest.open("GET", f"/jobs/{job}/output").close()  # Somebody who looks on
        submitter = {"Penstock-Submitter": bundle.submission.submitter}
        first, second = (cluster.rest.open("GET", f"/jobs/{job}/output", headers=submitter) for _ in range(2))
        first.readline(), second.readline()
        first.close()
        second.readline(), second.readline()
        assert cluster.rest.get(f"/jobs/{job}/status") == {"status": "RUNNING"}
        second.close()
        eventually(lambda: cluster.rest.get(f"/jobs/{job}/status") == {"status": "CANCELED"})


def test_those_who_look_on_take_nothing_from_the_client(cluster, capsys, eventually):
    with contextlib.ExitStack() as stack:
        client, connection = waiting_job(cluster, stack)
        path = f"/jobs/{client.get_job_id()}/output"
        others = [stack.enter_context(cluster.rest.open("GET", path)) for _ in range(2)]
        for other in others:
            assert json.loads(other.readline()) == {}  # It is there.
        connection.sendall(b"river\nrain\n")
        shown: list[str] = []
        eventually(lambda: shown.append(capsys.readouterr().out) or "".join(shown) == "river\nrain\n")
        for other in others:
            events = (json.loads(line) for line in other)
            lines = itertools.islice((event["line"] for event in events if "line" in event), 2)
            assert list(lines) == ["river", "rain"]
        client.cancel().result(30)


def bundle_of(env: StreamExecutionEnvironment, dependencies: JobDependencies | None = None) -> Any:
    """The job of an environment as its client would send it."""
    graph = build_job_graph(env.get_stream_graph())
    return bundled(graph, env.get_configuration(), dependencies or JobDependencies())


def write_module(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "rates_of_day.py").write_text(text)
    return str(folder / "rates_of_day.py")


def job_with_module(cluster: Any, file: str, monkeypatch: pytest.MonkeyPatch) -> StreamExecutionEnvironment:
    """A job whose function is one of a module, as a client process that imported it would define it."""
    sys.modules.pop("rates_of_day", None)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(Path(file).parent))
        import rates_of_day  # type: ignore[import-not-found]

        env = cluster.environment()
        env.add_python_file(file)
        env.from_collection([1]).map(rates_of_day.rate).print()
    return env


def forget_module() -> None:
    """Client and job manager are one process here: let the job manager load the module itself."""
    sys.modules.pop("rates_of_day", None)


def test_next_version_of_a_module_is_used_once_the_job_with_the_old_one_has_ended(
    cluster, tmp_path, monkeypatch, capsys
):
    for number in ("1", "2"):
        file = write_module(tmp_path / f"version-{number}", f"def rate(x): return {number}")
        job_with_module(cluster, file, monkeypatch).execute()
        forget_module()
    assert capsys.readouterr().out == "1\n2\n"


def test_another_module_of_the_same_name_is_refused_while_a_job_uses_the_first(cluster, tmp_path):
    first = write_module(tmp_path / "first", "")
    second = write_module(tmp_path / "second", "")
    modules = ShippedModules()
    modules.add([first])
    with pytest.raises(InvalidProgramError, match=r"brings a module 'rates_of_day'.*rename the module"):
        modules.add([second])
    modules.remove([first])
    modules.add([second])
    modules.remove([second])
    assert str(tmp_path / "second") not in sys.path


def test_file_that_is_too_large_is_named_with_what_to_do(start_cluster):
    env = start_cluster({"rest.server.max-content-length": "1000"}).environment()
    env.from_collection(["x" * 2000]).print()
    with pytest.raises(InvalidProgramError, match=r"takes at most 1000 .* larger rest\.server\.max-content-length"):
        env.execute()


def test_file_is_uploaded_once(cluster, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("river rain")
    env, dependencies = cluster.environment(), JobDependencies()
    env.from_collection([1]).print()
    dependencies.register_cached_file(str(words), "words", False)
    with bundle_of(env, dependencies) as bundle:
        hashes = list(bundle.blobs)
        assert cluster.rest.post("/blobs/missing", {"blobs": hashes})["missing"] == hashes
        upload(cluster.rest, bundle)
        assert cluster.rest.post("/blobs/missing", {"blobs": hashes})["missing"] == []


def test_damaged_upload_is_refused(cluster):
    with pytest.raises(RestClientError, match="upload it again") as caught:
        cluster.rest.put("/blobs/" + "0" * 64, b"river", 5)
    assert caught.value.status == 400


def test_job_from_another_python_is_refused(cluster):
    env = cluster.environment()
    env.from_collection([1]).print()
    with bundle_of(env) as bundle:
        upload(cluster.rest, bundle)
        with pytest.raises(RestClientError, match=r"comes from Python 2\.7"):
            cluster.rest.post("/jobs", {**bundle.submission.to_json(), "python": "2.7"})


def held_up_preparation(monkeypatch) -> tuple[threading.Event, threading.Event, list[str]]:
    """The next job waits in its preparation: events for its arrival and for its release, and the ids prepared."""
    arrived, released, prepared = threading.Event(), threading.Event(), []
    prepare = session_cluster.prepare_job

    def held_up(graph, config, dependencies, spark, job_id, *more):
        prepared.append(str(job_id))
        arrived.set()
        assert released.wait(30)
        return prepare(graph, config, dependencies, spark, job_id, *more)

    monkeypatch.setattr(session_cluster, "prepare_job", held_up)
    return arrived, released, prepared


def test_job_that_is_submitted_again_while_it_is_prepared_runs_once(cluster, monkeypatch):
    arrived, released, prepared = held_up_preparation(monkeypatch)
    env = cluster.environment(execution_attached="false")
    env.from_collection([1]).print()
    with bundle_of(env) as bundle, ThreadPoolExecutor() as clients:
        upload(cluster.rest, bundle)
        first = clients.submit(cluster.session.submit, bundle.submission)
        assert arrived.wait(30)
        second = clients.submit(cluster.session.submit, bundle.submission)
        with pytest.raises(TimeoutError):
            second.result(0.2)
        released.set()
        assert first.result(30) == second.result(30) == bundle.submission.job_id
    assert prepared == [bundle.submission.job_id]


def test_files_of_a_job_stay_while_it_is_prepared(cluster, tmp_path, monkeypatch):
    arrived, released, _ = held_up_preparation(monkeypatch)
    words = tmp_path / "words.txt"
    words.write_text("river rain")
    env, dependencies = cluster.environment(execution_attached="false"), JobDependencies()
    env.from_collection([1]).print()
    dependencies.register_cached_file(str(words), "words", False)
    with bundle_of(env, dependencies) as bundle, ThreadPoolExecutor() as clients:
        upload(cluster.rest, bundle)
        submitted = clients.submit(cluster.session.submit, bundle.submission)
        assert arrived.wait(30)
        for blob in tmp_path.glob("cluster-*/blobs/*"):
            os.utime(blob, (0, 0))
        cluster.session.clean()
        assert cluster.rest.post("/blobs/missing", {"blobs": list(bundle.blobs)})["missing"] == []
        released.set()
        submitted.result(30)


def test_ended_jobs_are_shown_again_after_a_restart(start_cluster, tmp_path):
    settings = {"jobmanager.archive.fs.dir": str(tmp_path / "archive"), "jobstore.max-capacity": "2"}
    first = start_cluster(settings)
    for name in ("one", "two", "three"):
        env = first.environment()
        env.from_collection([1]).map(lambda x: x).print()
        env.execute(name)
    kept = first.rest.get("/jobs/overview")
    assert [job["name"] for job in kept["jobs"]] == ["three", "two"]
    second = start_cluster(settings)
    assert second.rest.get("/jobs/overview") == kept
    job = kept["jobs"][0]["jid"]
    assert second.rest.get(f"/jobs/{job}") == first.rest.get(f"/jobs/{job}")
    vertex = second.rest.get(f"/jobs/{job}")["vertices"][0]["id"]
    assert second.rest.get(f"/jobs/{job}/vertices/{vertex}") == first.rest.get(f"/jobs/{job}/vertices/{vertex}")


def test_settings_of_the_job_manager_are_the_defaults_of_its_jobs(start_cluster):
    cluster = start_cluster({"execution.checkpointing.min-pause": "7 s", "execution.checkpointing.timeout": "1 min"})
    env = cluster.environment()
    env.get_configuration().set_string("execution.checkpointing.timeout", "2 min")
    env.from_collection([1]).print()
    job = env.execute().get_job_id()
    told = cluster.rest.get(f"/jobs/{job}/checkpoints/config")
    assert (told["min_pause"], told["timeout"]) == (7_000, 120_000)


def test_cluster_is_shut_down_when_asked(cluster):
    assert cluster.rest.delete("/cluster") == {}
    assert cluster.has_ended.is_set()


def test_pages_of_other_sites_cannot_reach_it(cluster):
    for headers in ({"Host": "river.example.com"}, {"Origin": "http://river.example.com"}):
        with pytest.raises(RestClientError) as caught:
            cluster.rest.open("POST", "/jobs", b"{}", headers)
        assert caught.value.status == 403
    assert cluster.rest.open("GET", "/jobs", None, {"Origin": "http://river.example.com"}).status == 200


def test_address_that_is_no_job_manager_is_reported(start_cluster):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    env = start_cluster().environment(rest_port=str(port))
    env.from_collection([1]).print()
    with pytest.raises(RestClientError, match=f"nobody answers at 127.0.0.1:{port}"):
        env.execute()
