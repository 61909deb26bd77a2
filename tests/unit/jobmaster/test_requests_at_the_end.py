"""Requests that meet a region at its very end, when it has done everything and has not yet left."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from job_parts import PATIENCE_S, RESTARTING, Listening, environment, file_sink, job_of, numbers_in

from penstock.checkpoint.finding import find_checkpoint
from penstock.common import JobStatus
from penstock.common.exceptions import CheckpointError
from penstock.datastream.functions import MapFunction
from penstock.jobmaster.execution.stage_executor import InlineExecutor


class AsksAtTheEnd(InlineExecutor):
    """Calls `ask` when the tasks of its region are to end, which is the last thing that a region does."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = lambda: None
        self.answer = None

    def end_run(self) -> None:
        super().end_run()
        if self.answer is None:
            self.answer = self.ask()


class WaitsFor(MapFunction):
    """Passes the first numbers on, and the others when there is a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def map(self, value):
        while value > 20 and not self.path.exists():
            threading.Event().wait(0.001)
        return value


def job_with_two_regions(tmp_path, executor, settings):
    env = environment()
    for region, last in enumerate([30, 100]):
        numbers = env.from_sequence(1, last).map(Listening())
        if region:
            numbers = numbers.map(WaitsFor(tmp_path / "asked"))
        numbers.sink_to(file_sink(tmp_path / f"region-{region}"))
    return job_of(env, settings, executor)


@pytest.mark.parametrize("how", ["savepoint", "checkpoint", "stop", "drain"])
def test_the_others_answer_a_request_that_comes_at_the_end_of_a_region(tmp_path, how):
    executor = AsksAtTheEnd()
    job = job_with_two_regions(tmp_path, executor, RESTARTING)
    master, folder = job.master, str(tmp_path / "savepoints")

    def ask():
        asked = {
            "savepoint": lambda: master.trigger_savepoint(folder),
            "checkpoint": master.trigger_checkpoint,
            "stop": lambda: master.stop_with_savepoint(folder, drain=False),
            "drain": lambda: master.stop_with_savepoint(folder, drain=True),
        }[how]()
        (tmp_path / "asked").touch()
        return asked

    executor.ask = ask
    job.start().join()
    answer = executor.answer.result(PATIENCE_S)
    assert master.status is JobStatus.FINISHED and master.restarts == 0
    assert numbers_in(tmp_path / "region-0") == list(range(1, 31))
    read = numbers_in(tmp_path / "region-1")
    assert read == list(range(1, len(read) + 1))
    if how != "checkpoint":
        assert find_checkpoint(answer).metadata.is_savepoint
    if how in ("savepoint", "checkpoint"):
        assert len(read) == 100
    else:
        assert master.stopped_with == answer


def test_a_job_that_ends_without_a_checkpoint_says_so(tmp_path):
    env = environment()
    env.from_sequence(1, 30).map(lambda value: value).print()
    executor = AsksAtTheEnd()
    job = job_of(env, {}, executor)
    executor.ask = lambda: job.master.trigger_savepoint(str(tmp_path / "savepoints"))
    job.start().join()
    with pytest.raises(CheckpointError, match="has ended before"):
        executor.answer.result(PATIENCE_S)
