"""Who is notified of a checkpoint, and when: at once, even in an idle job, and never of one of another run."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from job_parts import (
    PATIENCE_S,
    RESTARTING,
    FileTransactions,
    NumberServer,
    environment,
    job_of,
    numbers_in,
    wait_until,
)
from shared_by_copies import SharedByCopies

from penstock.datastream.functions import (
    CheckpointListener,
    KeyedProcessFunction,
    MapFunction,
)


class Heard(SharedByCopies):
    """What copies of a function share: it does not take part in copying."""

    def __init__(self):
        self.of = []


class Listener(MapFunction, CheckpointListener):
    def __init__(self, heard):
        self.heard = heard

    def map(self, value):
        return int(value)

    def notify_checkpoint_complete(self, checkpoint_id):
        self.heard.of.append(checkpoint_id)


@contextlib.contextmanager
def serving(lines):
    with contextlib.closing(NumberServer(lines)) as server:
        yield server


@contextlib.contextmanager
def running(env, settings):
    job = job_of(env, settings).start()
    try:
        yield job
    finally:
        job.master.cancel()
        job.join()


@pytest.mark.parametrize(
    "settings", [RESTARTING, {"execution.checkpointing.interval": "20 ms"}], ids=["every", "20 ms"]
)
def test_idle_job_commits_its_transactions(tmp_path, settings):
    env = environment()
    with serving([1, 2, 3]) as server:
        stream = env.socket_text_stream("127.0.0.1", server.port).map(int)
        stream.add_sink(FileTransactions(str(tmp_path)))
        with running(env, settings):
            wait_until(lambda: numbers_in(tmp_path) == [1, 2, 3])


def test_idle_job_notifies_its_listeners(tmp_path):
    env, heard = environment(), Heard()
    with serving([1]) as server:
        env.socket_text_stream("127.0.0.1", server.port).map(Listener(heard)).print()
        with running(env, {"execution.checkpointing.interval": "20 ms"}) as job:
            wait_until(lambda: job.lines == [1] and job.master.checkpoints.latest_completed is not None)
            wait_until(lambda: job.master.checkpoints.latest_completed.id in heard.of)


def test_each_checkpoint_is_reported_once(tmp_path):
    env, heard = environment(), Heard()
    env.from_sequence(1, 100).map(Listener(heard)).print()
    job = job_of(env, RESTARTING).start().join()
    assert len(job.lines) == 100
    assert heard.of == sorted(set(heard.of)) and len(heard.of) >= 10
    assert heard.of[-1] == job.master.checkpoints.latest_completed.id


def test_nobody_hears_of_the_checkpoint_of_another_run(tmp_path):
    heard = Heard()

    def numbers(settings):
        env = environment()
        env.from_sequence(1, 100_000).map(Listener(heard)).print()
        return job_of(env, RESTARTING | settings).start()

    job = numbers({})
    wait_until(lambda: heard.of)
    path = job.master.stop_with_savepoint(str(tmp_path), drain=False).result(PATIENCE_S)
    job.join()
    former = set(heard.of)
    heard.of.clear()
    restored = numbers({"execution.state-recovery.path": path})
    try:
        wait_until(lambda: heard.of)
    finally:
        restored.master.cancel()
        restored.join()
    assert not former & set(heard.of)


def test_attempt_does_not_hear_of_the_checkpoint_that_it_starts_from():
    env, heard = environment(), Heard()
    told_at_start = []

    class FailsOnce(Listener):
        def open(self, runtime_context):
            told_at_start.append(list(heard.of))

        def map(self, value):
            if value == 55 and len(told_at_start) == 1:
                raise RuntimeError("stumbled")
            return value

    env.from_sequence(1, 100).map(FailsOnce(heard)).print()
    job_of(env, RESTARTING).start().join()
    assert len(told_at_start) == 2
    assert heard.of == sorted(set(heard.of)), "no checkpoint is told to two attempts"


# --- clocks ----------------------------------------------------------------------------------------------------------


class TimerAtTheEndOfTime(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(2**63 - 1)
        yield value


def test_timer_at_the_end_of_time_only_waits(tmp_path):
    env = environment()
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        numbers = env.socket_text_stream("127.0.0.1", server.getsockname()[1]).map(int)
        numbers.key_by(lambda value: 0).process(TimerAtTheEndOfTime()).print()
        with running(env, {"penstock.epoch.interval": "1 ms"}) as job:
            connection, _ = server.accept()
            with connection:
                for number in (1, 2):
                    connection.sendall(f"{number}\n".encode())
                    wait_until(lambda number=number: job.lines == list(range(1, number + 1)))
            job.join()


def test_wall_clock_that_is_set_back_stalls_nothing(monkeypatch, tmp_path):
    """Ten hours back after the third epoch: the job, its checkpoints and its restarts continue."""
    real, steps = time.time_ns, []
    monkeypatch.setattr(time, "time_ns", lambda: real() - 36_000 * 10**9 * len(steps))

    class SetsClock(MapFunction):
        def map(self, value):
            if value in (35, 65):
                steps.append(value)
                if len(steps) == 2:
                    raise RuntimeError("stumbled")
            return value

    env = environment()
    env.from_sequence(1, 100).map(SetsClock()).print()
    settings = RESTARTING | {"penstock.epoch.interval": "5 ms", "execution.checkpointing.interval": "10 ms"}
    job = job_of(env, settings).start().join()
    assert sorted(set(job.lines)) == list(range(1, 101))
    assert job.master.checkpoints.counts()["completed"] > 1
