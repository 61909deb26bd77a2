"""Something fails between a checkpoint's `_metadata` and the next epoch: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_parts import (
    RESTARTING,
    Counting,
    Emitting,
    FileTransactions,
    Listening,
    NumbersEnumerator,
    NumbersReader,
    NumbersSource,
    environment,
    job_of,
    write_everywhere,
)

from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.sinks.job_output import CollectedValues
from penstock.jobmaster.sinks.sink_commits import SinkCommits
from penstock.jobmaster.sources.split_coordinator import SplitSourceCoordinator
from penstock.jobmaster.sources.spool import Spool

CALLBACKS = {
    "the enumerator is notified of the checkpoint": (NumbersEnumerator, "notify_checkpoint_complete"),
    "the reader is notified": (NumbersReader, "notify_checkpoint_complete"),
    "the source function is notified": (Counting, "notify_checkpoint_complete"),
    "a function in a task is notified": (Listening, "notify_checkpoint_complete"),
    "a transaction is committed": (FileTransactions, "commit"),
    "a spool forgets": (Spool, "forget_before"),
    "a segment of a spool is removed": (Path, "unlink"),
    "a source is told": (SplitSourceCoordinator, "checkpoint_complete"),
    "a committer commits": (FileCommitter, "commit"),
    "all committers commit": (SinkCommits, "commit"),
    "collected values are handed out": (CollectedValues, "put_all"),
    "the job is notified of the checkpoint": (JobMaster, "checkpoint_completed"),
    "old metadata is removed": (LocalFolder, "delete_all"),
    "all that is old is removed": (CompletedCheckpointStore, "remove_files"),
}
EXPECTED = sorted([*range(60), *range(100, 160), *range(200, 260), *range(300, 360)])


@dataclass(frozen=True)
class Fault:
    """The call of a callback that fails, and whether it had done its work before."""

    callback: str
    at: int
    is_done: bool
    error: type[Exception] = OSError


class Faults:
    """Makes callbacks fail while a job runs."""

    def __init__(self, monkeypatch, faults):
        self._faults = {(fault.callback, fault.at): fault for fault in faults}
        self._calls = Counter()
        self._lock = threading.Lock()
        self.hit = 0
        for name in {fault.callback for fault in faults}:
            self._patch(monkeypatch, name)

    def _patch(self, monkeypatch, name):
        owner, method = CALLBACKS[name]
        original = getattr(owner, method)

        def called(instance, *arguments, **keywords):
            if isinstance(instance, Path) and not instance.name.startswith("segment-"):
                return original(instance, *arguments, **keywords)
            with self._lock:
                self._calls[name] += 1
                fault = self._faults.get((name, self._calls[name]))
                self.hit += fault is not None
            if fault is None:
                return original(instance, *arguments, **keywords)
            if fault.is_done:
                original(instance, *arguments, **keywords)
            raise fault.error(f"{name}: call {fault.at} fails")

        monkeypatch.setattr(owner, method, called)


def all_sources(env):
    numbers = NumbersSource(200, 260)
    return env.from_collection(list(range(60))).union(
        env.add_source(Counting(100, 160)),
        env.add_source(Emitting(300, 360)),
        env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers"),
    )


def run_with(monkeypatch, folder, faults):
    monkeypatch.setattr("penstock.jobmaster.sources.spool.SEGMENT_BYTES", 1)
    injected = Faults(monkeypatch, faults)
    env = environment()
    write_everywhere(all_sources(env).map(Listening()), folder)
    job = job_of(env, RESTARTING).start().join()
    return job.results(folder), injected.hit


def everywhere(numbers):
    return dict.fromkeys(("files", "transactions", "printed", "collected"), numbers)


def test_undisturbed_job_shows_each_element_once(monkeypatch, tmp_path):
    assert run_with(monkeypatch, tmp_path, []) == (everywhere(EXPECTED), 0)


NEVER_HALF_DONE = {"collected values are handed out"}
"""One operation of a queue: it is done, or it has failed."""


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("callback", sorted(CALLBACKS))
def test_callback_that_fails_changes_no_result(monkeypatch, tmp_path, callback, at, is_done):
    is_done = is_done and callback not in NEVER_HALF_DONE
    results, hit = run_with(monkeypatch, tmp_path, [Fault(callback, at, is_done)])
    assert results == everywhere(EXPECTED)
    assert hit == 1


def test_store_with_errors_of_its_own_changes_no_result(monkeypatch, tmp_path):
    results, hit = run_with(monkeypatch, tmp_path, [Fault("old metadata is removed", 1, False, KeyError)])
    assert (results, hit) == (everywhere(EXPECTED), 1)


faults = st.builds(Fault, st.sampled_from(sorted(set(CALLBACKS) - NEVER_HALF_DONE)), st.integers(1, 12), st.booleans())


@settings(max_examples=10)
@given(faults=st.lists(faults, min_size=2, max_size=6))
def test_any_number_of_failing_callbacks_changes_no_result(tmp_path_factory, faults):
    with pytest.MonkeyPatch.context() as monkeypatch:
        results, _ = run_with(monkeypatch, tmp_path_factory.mktemp("job"), faults)
    assert results == everywhere(EXPECTED)
