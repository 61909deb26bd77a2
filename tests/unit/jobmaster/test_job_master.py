"""A job from its graph to its end, in this process: restarts, output, states, cancellation."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from pathlib import Path

import pytest

from penstock.common import Configuration, JobID, JobStatus
from penstock.common.exceptions import JobExecutionError, UserFunctionError
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.accumulators import IntCounter
from penstock.datastream.functions import MapFunction
from penstock.graph.execution_graph import ExecutionState
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster

PATIENCE_S = 20


class Marker:
    """Counts calls in a file: it survives restarts, as no variable of a task does."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "marker"
        self._path.touch()

    def count(self) -> int:
        """How often this was called, this time included."""
        with self._path.open("a") as file:
            file.write("x")
        return len(self._path.read_text())


@pytest.fixture
def marker(tmp_path) -> Marker:
    return Marker(tmp_path)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def fails_at(record, marker: Marker, times: int):
    """A function that fails at a record, the first `times` times."""

    def function(value):
        if value == record and marker.count() <= times:
            raise ValueError(f"not {record} yet")
        return value

    return function


def master_of(env: StreamExecutionEnvironment, **settings: str) -> JobMaster:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    graph = build_job_graph(env.get_stream_graph(job_name="the job"))
    return JobMaster(JobID.generate(), graph, Configuration.from_dict(named), InlineExecutor())


def restarting(env: StreamExecutionEnvironment, attempts: int, epoch_records: int | None = None) -> JobMaster:
    epochs = {} if epoch_records is None else {"penstock__epoch__max_records": str(epoch_records)}
    return master_of(
        env,
        restart_strategy__type="fixed-delay",
        restart_strategy__fixed_delay__attempts=str(attempts),
        restart_strategy__fixed_delay__delay="1 ms",
        penstock__epoch__interval="1 ms",
        **epochs,
    )


def states_of(master: JobMaster) -> set[ExecutionState]:
    return {vertex.state for vertex in master.execution_graph.vertices()}


def running_sum(stream: DataStream) -> DataStream:
    return stream.key_by(lambda value: value % 2).reduce(lambda a, b: a + b)


# --- to the end ------------------------------------------------------------------------------------------------------


def test_bounded_job_runs_to_its_end(env, capsys):
    env.from_collection([1, 2, 3]).map(lambda value: value * 10).print()
    master = master_of(env)
    assert master.status is JobStatus.INITIALIZING
    result = master.run()
    assert (result.get_job_id(), master.status) == (master.job_id, JobStatus.FINISHED)
    assert states_of(master) == {ExecutionState.FINISHED}
    assert capsys.readouterr().out == "10\n20\n30\n"


class CannotOpen(MapFunction):
    def open(self, runtime_context):
        raise ConnectionError("no such database")

    def map(self, value):
        return value


def test_functions_are_opened_before_the_first_record_comes(env):
    """What cannot be opened is an error at once, not when somebody sends the first record at night."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env.socket_text_stream("127.0.0.1", silent.getsockname()[1]).map(CannotOpen()).print()
        with pytest.raises(JobExecutionError, match="no such database"):
            master_of(env).run()


@pytest.mark.parametrize("epoch_records", [1, 2, 100])
def test_epochs_do_not_show_in_the_result(env, capsys, epoch_records):
    running_sum(env.from_collection([1, 2, 3, 4, 5])).print()
    master_of(env, penstock__epoch__max_records=str(epoch_records), penstock__epoch__interval="1 ms").run()
    assert sorted(capsys.readouterr().out.split()) == ["1", "2", "4", "6", "9"]


def test_working_folder_is_gone_afterwards(env, tmp_path, capsys):
    running_sum(env.from_collection([1, 2, 3])).print()
    folder = tmp_path / "work"
    master_of(env, penstock__working_dir=str(folder), penstock__epoch__max_records="1").run()
    assert list(folder.iterdir()) == []


# --- failures and restarts -------------------------------------------------------------------------------------------


def test_failure_without_restarts_fails_the_job(env, marker):
    env.from_collection([1, 2]).map(fails_at(2, marker, times=1)).name("careful").print()
    master = master_of(env)
    with pytest.raises(UserFunctionError) as caught:
        master.run()
    assert str(caught.value).startswith(
        "job 'the job' failed in operator 'careful', subtask 1/1, at record 2: ValueError: not 2 yet\n"
    )
    assert (caught.value.operator, caught.value.subtask, caught.value.record) == ("careful", 0, "2")
    assert (caught.value.job_id, caught.value.job_name) == (str(master.job_id), "the job")
    assert isinstance(caught.value.__cause__, ValueError)
    assert master.status is JobStatus.FAILED
    assert states_of(master) == {ExecutionState.FAILED}


def test_failed_job_prints_nothing_of_its_last_epoch(env, marker, capsys):
    env.from_collection([1, 2]).map(fails_at(2, marker, times=1)).print()
    with pytest.raises(UserFunctionError):
        master_of(env).run()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("failures", [1, 3])
def test_restarted_job_gives_the_result_of_one_that_never_failed(env, marker, capsys, failures):
    running_sum(env.from_collection([1, 2, 3, 4, 5, 6]).map(fails_at(5, marker, failures))).print()
    master = restarting(env, attempts=failures, epoch_records=2)
    master.run()
    assert sorted(map(int, capsys.readouterr().out.split())) == [1, 2, 4, 6, 9, 12]
    assert (master.status, master.restarts) == (JobStatus.FINISHED, failures)
    assert {vertex.current.attempt for vertex in master.execution_graph.vertices()} == {failures}


@pytest.mark.parametrize("failing", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("place", ["before the key", "behind the key"])
def test_failure_in_any_epoch_prints_nothing_twice(env, marker, capsys, failing, place):
    stream = env.from_collection([1, 2, 3, 4, 5, 6])
    if place == "before the key":
        counts = running_sum(stream.map(fails_at(failing, marker, 1)))
    else:
        sums = {1: 1, 2: 2, 3: 4, 4: 6, 5: 9, 6: 12}
        counts = running_sum(stream).map(fails_at(sums[failing], marker, 1))
    counts.print()
    restarting(env, attempts=1, epoch_records=1).run()
    assert sorted(map(int, capsys.readouterr().out.split())) == [1, 2, 4, 6, 9, 12]


def test_one_failure_more_than_attempts_fails_the_job(env, marker):
    env.from_collection([1]).map(fails_at(1, marker, times=3)).print()
    master = restarting(env, attempts=2)
    with pytest.raises(UserFunctionError, match="not 1 yet"):
        master.run()
    assert (master.restarts, master.status) == (2, JobStatus.FAILED)


def test_functions_start_afresh_after_a_restart(env, marker, capsys):
    class Counting(MapFunction):
        def __init__(self) -> None:
            self.seen = 0

        def map(self, value):
            self.seen += 1
            if self.seen == 3 and marker.count() == 1:
                raise ValueError("three")
            return self.seen

    env.from_collection(["a", "b", "c", "d"]).map(Counting()).print()
    restarting(env, attempts=1).run()
    assert capsys.readouterr().out.split() == ["1", "2", "3", "4"]


def test_accumulators_count_a_repeated_epoch_once(env, marker):
    class Counted(MapFunction):
        def open(self, runtime_context):
            self._counter = IntCounter()
            runtime_context.add_accumulator("records", self._counter)

        def map(self, value):
            self._counter.add(1)
            if value == 3 and marker.count() == 1:
                raise ValueError("three")
            return value

    env.from_collection([1, 2, 3, 4]).map(Counted()).print()
    result = restarting(env, attempts=1, epoch_records=2).run()
    assert result.get_accumulator_result("records") == 4


# --- cancelling ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(master: JobMaster):
    """The master in a thread of its own; cancelled and joined at the end."""
    thread = threading.Thread(target=master.run, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        master.cancel()
        thread.join(PATIENCE_S)


def test_job_that_waits_for_input_can_be_cancelled(env):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        env.socket_text_stream("127.0.0.1", server.getsockname()[1]).print()
        master = master_of(env)
        with running(master) as thread, server.accept()[0]:
            master.cancel()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert master.status is JobStatus.CANCELED
    assert states_of(master) == {ExecutionState.CANCELED}


def test_job_that_waits_for_its_server_can_be_cancelled(env):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    env.socket_text_stream("127.0.0.1", port, max_retry=-1, retry_delay=5).print()
    master = master_of(env)
    with running(master) as thread:
        master.cancel()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert master.status is JobStatus.CANCELED


def test_job_that_waits_for_its_restart_can_be_cancelled(env, marker):
    env.from_collection([1]).map(fails_at(1, marker, times=100)).print()
    master = master_of(env, restart_strategy__type="fixed-delay", restart_strategy__fixed_delay__delay="1 h")
    restarts = threading.Event()
    wait = master._changed.wait_for

    def wait_for(*arguments, **keywords):
        restarts.set()
        return wait(*arguments, **keywords)

    master._changed.wait_for = wait_for  # type: ignore[method-assign]
    with running(master) as thread:
        assert restarts.wait(PATIENCE_S)
        master.cancel()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert master.status is JobStatus.CANCELED


def test_cancelling_before_the_start_runs_nothing(env, capsys):
    env.from_collection([1]).print()
    master = master_of(env)
    master.cancel()
    master.run()
    assert (master.status, capsys.readouterr().out) == (JobStatus.CANCELED, "")


def test_cancelling_a_finished_job_changes_nothing(env, capsys):
    env.from_collection([1]).print()
    master = master_of(env)
    master.run()
    master.cancel()
    assert master.status is JobStatus.FINISHED


def test_refused_socket_fails_the_job_with_a_clear_sentence(env):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    env.socket_text_stream("127.0.0.1", port).print()
    master = master_of(env)
    with pytest.raises(JobExecutionError, match=rf"socket source 127.0.0.1:{port}: cannot connect \(Connection ref"):
        master.run()
    assert master.status is JobStatus.FAILED


def test_savepoint_of_a_job_that_fails_before_its_regions_run_fails_with_it(env, tmp_path):
    env.from_sequence(1, 3).set_parallelism(2).print()
    master = master_of(env, taskmanager__numberOfTaskSlots="1", slot__request__timeout="1 ms")
    asked = [master.trigger_savepoint(str(tmp_path)), master.trigger_checkpoint()]
    with pytest.raises(JobExecutionError, match="could not acquire the slots"):
        master.run()
    for each in asked:
        assert "has ended before" in str(each.exception(timeout=PATIENCE_S))


def test_region_that_waits_for_its_restart_ends_when_another_one_fails_for_good(env, tmp_path):
    waits = tmp_path / "waits"
    reported = logging.Handler(logging.WARNING)
    reported.emit = lambda record: waits.touch()  # type: ignore[method-assign]

    def fail(value):
        raise ValueError(f"never {value}")

    def fail_later(value):
        while not waits.exists():
            time.sleep(0.001)
        fail(value)

    env.from_sequence(1, 3).map(fail).print()
    env.from_sequence(1, 3).map(fail_later).print()
    master = master_of(
        env,
        restart_strategy__type="fixed-delay",
        restart_strategy__fixed_delay__attempts="1",
        restart_strategy__fixed_delay__delay="1 h",
    )
    failures: list[Exception] = []

    def run() -> None:
        try:
            master.run()
        except UserFunctionError as failure:
            failures.append(failure)

    running = threading.Thread(target=run, daemon=True)
    log = logging.getLogger("penstock.jobmaster.job_master")
    log.addHandler(reported)
    try:
        running.start()
        running.join(PATIENCE_S)
    finally:
        log.removeHandler(reported)
    assert not running.is_alive() and master.status is JobStatus.FAILED
    assert "never 1" in str(failures[0])


class GivesBack(InlineExecutor):
    """Says when its region has given back what it held."""

    def __init__(self, given_back: threading.Event) -> None:
        super().__init__()
        self._given_back = given_back

    def sibling(self) -> InlineExecutor:
        return GivesBack(self._given_back)

    def end_region(self) -> None:
        self._given_back.set()


def test_region_that_has_ended_gives_back_what_it_held_while_others_continue(env):
    given_back = threading.Event()
    env.from_sequence(1, 3).map(lambda value: value)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        env.socket_text_stream("127.0.0.1", server.getsockname()[1]).print()
        graph = build_job_graph(env.get_stream_graph())
        master = JobMaster(JobID.generate(), graph, Configuration(), GivesBack(given_back))
        running = threading.Thread(target=master.run)
        running.start()
        assert given_back.wait(PATIENCE_S) and master.status is JobStatus.RUNNING
        master.cancel()
        running.join(PATIENCE_S)
