"""What a job in batch mode asks for before it runs, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.slots import NoResourceAvailableError
from penstock.jobmaster.execution.stage_executor import EpochCancelledError
from penstock.runtime.protocol import JobDeployment
from penstock.spark import batch_executor
from penstock.spark.batch_executor import BatchExecutor
from penstock.spark.task_slots import SlotLedger
from penstock.testing.memory_folder import MemoryFolder


@pytest.fixture
def ledger(monkeypatch) -> SlotLedger:
    made = SlotLedger(lambda: 2, {}, settled_s=0)
    monkeypatch.setattr(batch_executor, "slot_ledger", lambda context: made)
    monkeypatch.setattr(batch_executor, "cancel_group", lambda context, name: None)
    return made


class Context:
    """What an executor asks a Spark context for."""

    def getConf(self) -> SimpleNamespace:
        return SimpleNamespace(getAll=list)

    def broadcast(self, value: object) -> SimpleNamespace:
        return SimpleNamespace(value=value, destroy=lambda: None)


def executor(timeout: str = "30 s") -> BatchExecutor:
    side = SimpleNamespace(
        context=Context(),
        context_for_workers=Context(),
        config=Configuration.from_dict({"slot.request.timeout": timeout}),
        job_name="job",
        job_id="0" * 32,
        dependencies=SimpleNamespace(around=lambda pickled: pickled),
    )
    return BatchExecutor(side)  # type: ignore[arg-type]


def deploy(batch: BatchExecutor) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 3).print()
    batch.deploy(JobDeployment("0" * 32, build_job_graph(env.get_stream_graph())), MemoryFolder(), lambda: None)


def test_job_that_finds_all_slots_held_by_workers_does_not_wait_for_ever(ledger):
    ledger.take(2, 1, 0, 0, lambda: False, "a job that streams")
    with pytest.raises(NoResourceAvailableError, match=r"'job' could not acquire .* required 1, available 0 of 2"):
        deploy(executor("0 ms"))


def test_job_keeps_one_slot_for_all_its_regions_while_any_of_them_runs(ledger):
    """Workers of another job that starts meanwhile would stay on the last one, and Spark would wait forever."""
    first = executor("0 ms")
    second = first.sibling()
    deploy(first)
    deploy(second)
    assert ledger.take(2, 1, 0, 0, lambda: False, "a job that streams") == 1
    first.end_run()
    with pytest.raises(NoResourceAvailableError):
        ledger.take(1, 1, 0, 0, lambda: False, "another one")
    deploy(first)  # A restart needs no other slot.
    for batch in (first, second):
        batch.end_run()
        batch.close()
    assert ledger._taken == 1


def test_cancelled_job_waits_for_no_slot(ledger):
    ledger.take(2, 1, 0, 0, lambda: False, "a job that streams")
    batch = executor()
    batch.cancel()
    with pytest.raises(EpochCancelledError):
        deploy(batch)
