"""Stores and callbacks that do not return: a job can still be cancelled, and nothing of it happens afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import job_parts
import pytest
from job_parts import (
    PATIENCE_S,
    RESTARTING,
    Counting,
    FileTransactions,
    Listening,
    Numbered,
    NumbersEnumerator,
    NumbersReader,
    NumbersSource,
    environment,
    file_sink,
    job_of,
    numbers_in,
    wait_until,
)

from penstock.checkpoint.folders import folder_at
from penstock.common.exceptions import CheckpointError
from penstock.common.job_status import JobStatus
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.testing import Fault, FaultPlan, FaultyFolder

ENDLESS = 10**9
SOON = {"task.cancellation.timeout": "200 ms"}


def blocked(operation, path, at=1):
    """All operations of a kind, from the given one on."""
    return Fault(operation, at=at, times=10**6, path=path, action="block")


STORES = {
    "the folder of the job is made": blocked("make", "*/shared"),
    "the file of a state is begun": blocked("create", "*/shared/*"),
    "the file of a state is written": blocked("write", "*/shared/*"),
    "the file of a state becomes visible": blocked("rename", "*/shared/*", at=20),
    "the folder of a checkpoint is made": blocked("make", "*/chk-*"),
    "metadata is written": blocked("write", "*/_metadata", at=3),
    "metadata becomes visible": blocked("rename", "*/_metadata", at=3),
    "an old checkpoint is removed": blocked("delete", "*/chk-*"),
    "an old file is removed": blocked("delete", "*/shared/*"),
    "nothing is answered": blocked("any", "*"),
    "nothing is answered any more": blocked("any", "*", at=100),
}


def running(env, folder, plan, **settings):
    stored = {"execution.checkpointing.dir": str(folder / "checkpoints")}
    return job_of(
        env, RESTARTING | SOON | stored | settings, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan)
    ).start()


def job_in(plan, folder, regions=1, **settings):
    env = environment()
    for region in range(regions):
        numbers = env.from_sequence(1, ENDLESS).key_by(lambda value: value % 7)
        numbers.process(Numbered()).sink_to(file_sink(folder / f"out-{region}"))
    return running(env, folder, plan, **settings)


@contextlib.contextmanager
def no_threads_left():
    """Outside, all threads that were begun within have ended: what a late answer leads to has happened."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def visible_in(folder):
    """What others take for results or for checkpoints."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and "notes" not in path.parts]
    return {path: path.stat().st_mtime_ns for path in files if path.name == "_metadata" or path.name.startswith("part")}


@pytest.mark.parametrize("regions", [1, 2])
@pytest.mark.parametrize("store", sorted(STORES))
def test_job_is_cancelled_whatever_its_store_does(tmp_path, store, regions):
    plan = FaultPlan(str(tmp_path / "notes"), (STORES[store],))
    retained = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    with no_threads_left(), plan.blocking():
        job = job_in(plan, tmp_path, regions, **retained)
        plan.wait_until_blocked()
        job.master.cancel()
        job.join()
        assert job.master.status is JobStatus.CANCELED
        at_its_end = visible_in(tmp_path)
    assert visible_in(tmp_path).items() <= at_its_end.items()


def test_job_without_a_limit_waits_for_its_store(tmp_path):
    plan = FaultPlan(str(tmp_path / "notes"), (STORES["metadata is written"],))
    with plan.blocking():
        job = job_in(plan, tmp_path, **{"task.cancellation.timeout": "0"})
        plan.wait_until_blocked()
        job.master.cancel()
        assert job.master.status is JobStatus.CANCELLING
    job.join()
    assert job.master.status is JobStatus.CANCELED


def test_log_says_what_the_job_has_not_waited_for(tmp_path, caplog):
    plan = FaultPlan(str(tmp_path / "notes"), (STORES["metadata is written"],))
    with plan.blocking():
        job = job_in(plan, tmp_path)
        plan.wait_until_blocked()
        job.master.cancel()
        job.join()
    assert "the job ends without waiting for a call that does not return: _wait_at_gate (" in caplog.text


def test_other_regions_go_on_while_the_store_blocks_one(tmp_path):
    plan = FaultPlan(str(tmp_path / "notes"), (blocked("write", "*/_metadata"),))
    env = environment()
    env.from_sequence(1, 5).map(Listening()).sink_to(file_sink(tmp_path / "out"))  # Ends with a checkpoint.
    env.from_sequence(1, ENDLESS).key_by(lambda value: value % 7).process(Numbered()).print()
    with plan.blocking():
        job = running(env, tmp_path, plan, **{"execution.checkpointing.interval": "1 h"})
        plan.wait_until_blocked()
        seen = len(job.lines)
        wait_until(lambda: len(job.lines) > seen + 100)
        job.master.cancel()
        job.join()


def test_savepoint_that_the_store_does_not_write_fails_with_the_job(tmp_path):
    plan = FaultPlan(str(tmp_path / "notes"), (blocked("read", "*/shared/*"),))
    with no_threads_left(), plan.blocking():
        job = job_in(plan, tmp_path)
        written = job.master.trigger_savepoint(str(tmp_path / "savepoints"))
        plan.wait_until_blocked()
        job.master.cancel()
        job.join()
        with pytest.raises(CheckpointError, match="the job was cancelled before, and its storage does not answer"):
            written.result(PATIENCE_S)


# --- callbacks -------------------------------------------------------------------------------------------------------


class Gate:
    """Where calls wait. In this process only."""

    def __init__(self):
        self.reached, self.is_open = threading.Event(), threading.Event()

    def blocking(self, function):
        def call(*arguments):
            self.reached.set()
            assert self.is_open.wait(PATIENCE_S)
            return function(*arguments)

        return call


CALLBACKS = {
    "FileSink commits": (FileCommitter, "commit"),
    "FileSink closes its committer": (FileCommitter, "close"),
    "an enumerator deals out splits": (NumbersEnumerator, "handle_split_request"),
    "an enumerator is saved": (NumbersEnumerator, "snapshot_state"),
    "an enumerator hears of a checkpoint": (NumbersEnumerator, "notify_checkpoint_complete"),
    "a reader reads": (NumbersReader, "poll_next"),
    "a reader is saved": (NumbersReader, "snapshot_state"),
    "a source function is saved": (Counting, "snapshot_state"),
    "a source function hears of a checkpoint": (Counting, "notify_checkpoint_complete"),
    "a source function is cancelled": (Counting, "cancel"),
    "a function processes": (Numbered, "process_element"),
    "a function hears of a checkpoint": (Listening, "notify_checkpoint_complete"),
    "a transaction is prepared": (FileTransactions, "pre_commit"),
    "a transaction is committed": (FileTransactions, "commit"),
}


def every_callback(folder):
    """A job with all of them, in two regions, which does not end by itself."""
    env = environment()
    (folder / "transactions").mkdir()
    splits = env.from_source(NumbersSource(1, 10_000), WatermarkStrategy.no_watermarks(), "numbers")
    splits.map(Listening()).sink_to(file_sink(folder / "files"))
    counted = env.add_source(Counting(1, ENDLESS)).key_by(lambda value: value % 7)
    counted.process(Numbered()).add_sink(FileTransactions(str(folder / "transactions")))
    return env


@pytest.mark.parametrize("callback", sorted(CALLBACKS))
def test_job_is_cancelled_whatever_a_callback_does(monkeypatch, tmp_path, callback):
    owner, name = CALLBACKS[callback]
    gate = Gate()
    at_end = name in ("close", "cancel")
    with no_threads_left():
        monkeypatch.setattr(owner, name, gate.blocking(getattr(owner, name)))
        job = running(every_callback(tmp_path), tmp_path, FaultPlan(str(tmp_path / "notes")))
        try:
            if at_end:
                wait_until(lambda: numbers_in(tmp_path / "files"))
            else:
                assert gate.reached.wait(PATIENCE_S)
            job.master.cancel()
            job.join()
            assert job.master.status is JobStatus.CANCELED
            at_its_end = visible_in(tmp_path)
        finally:
            gate.is_open.set()
    after = visible_in(tmp_path)
    if callback == "FileSink commits":
        after = {path: time for path, time in after.items() if not path.name.startswith("part")}  # Its own call's.
    assert after.items() <= at_its_end.items()
    assert gate.reached.is_set()


# --- processes -------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from pathlib import Path
from test_blocking import STORES, job_in
from penstock.testing import FaultPlan

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    plan = FaultPlan(str(folder / "notes"), (STORES[sys.argv[2]],))
    job = job_in(plan, folder)
    plan.wait_until_blocked()
    job.master.cancel()
    job.join()
"""


@pytest.mark.parametrize("store", ["an old file is removed", "the file of a state is written", "nothing is answered"])
def test_process_ends_although_its_store_does_not_answer(tmp_path, store):
    plan = FaultPlan(str(tmp_path / "notes"))
    modules = [str(Path(__file__).parent), str(Path(job_parts.__file__).parent)]
    environment_of_it = os.environ | {"PYTHONPATH": os.pathsep.join(modules)}
    with plan.blocking():
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), store],
            env=environment_of_it,
            check=True,
            timeout=6 * PATIENCE_S,
            close_fds=True,
        )
