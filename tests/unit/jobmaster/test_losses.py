"""Workers that are lost, and attempts that cannot even begin: what restarts, what is given up, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common import Configuration, JobID, JobStatus
from penstock.common.error_notes import notes_of
from penstock.common.exceptions import (
    CorruptStateError,
    JobExecutionError,
    PenstockError,
    UserFunctionError,
    WorkersLostError,
)
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.local_job_client import LocalJobClient

RECORDS = 20
QUICK = {
    "restart-strategy.exponential-delay.initial-backoff": "1 ms",
    "restart-strategy.exponential-delay.max-backoff": "1 ms",
    "penstock.restart.repeated-failure-attempts": "3",
    "penstock.epoch.max-records": "2",
    "penstock.epoch.interval": "1 ms",
}
CHECKPOINTS = {"execution.checkpointing.interval": "1 ms"}


class Stumbling(InlineExecutor):
    """Fails before epochs that read something: `fails` says of each whether it does, in the order they come."""

    def __init__(self, fails, failure=lambda number: WorkersLostError(f"worker 0 (process {number}) is gone")):
        super().__init__()
        self._fails, self._failure = fails, failure
        self.tries = 0

    def run_epoch(self, command, source_rows):
        if source_rows:
            self.tries += 1
            if self._fails(self.tries):
                raise self._failure(self.tries)
        return super().run_epoch(command, source_rows)


def job(executor: InlineExecutor, is_watched: bool, function=lambda value: value, **settings: str) -> JobMaster:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, RECORDS).map(function).print()
    graph = build_job_graph(env.get_stream_graph(job_name="the job"))
    config = Configuration.from_dict({**QUICK, **settings})
    return JobMaster(JobID.generate(), graph, config, executor, is_watched=is_watched)


def refuse(value: int) -> int:
    raise ValueError(f"not {value}")


@pytest.mark.parametrize("is_watched", [True, False])
def test_lost_workers_are_replaced_also_if_somebody_waits_for_a_bounded_job(is_watched, capsys):
    executor = Stumbling(lambda number: number in (2, 5, 6))
    master = job(executor, is_watched, **CHECKPOINTS)
    master.run()
    assert (master.status, master.restarts) == (JobStatus.FINISHED, 3)
    assert sorted({int(line) for line in capsys.readouterr().out.split()}) == list(range(1, RECORDS + 1))


@pytest.mark.parametrize("is_watched", [True, False])
def test_workers_that_die_again_and_again_at_the_same_place_end_the_job(is_watched):
    master = job(Stumbling(lambda number: number >= 3), is_watched, **CHECKPOINTS)
    with pytest.raises(WorkersLostError, match="is gone") as failure:
        master.run()
    assert (master.status, master.restarts) == (JobStatus.FAILED, 3)
    assert "penstock.restart.repeated-failure-attempts is 3" in notes_of(failure.value)[0]


def test_an_error_of_a_function_is_shown_at_once_if_somebody_waits_for_a_bounded_job():
    master = job(InlineExecutor(), True, refuse, **CHECKPOINTS)
    with pytest.raises(UserFunctionError, match="not 1") as failure:
        master.run()
    assert master.restarts == 0
    assert "a bounded job in the process of its own program" in notes_of(failure.value)[0]


def test_without_checkpoints_lost_workers_fail_the_job():
    master = job(Stumbling(lambda number: True), True)
    with pytest.raises(WorkersLostError) as failure:
        master.run()
    assert (master.restarts, notes_of(failure.value)) == (0, [])


def test_a_program_that_waits_for_its_bounded_job_sees_the_first_error():
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({**QUICK, **CHECKPOINTS, "execution.target": "inline"})
    )
    env.from_sequence(1, RECORDS).map(refuse).print()
    with pytest.raises(UserFunctionError) as failure:
        env.execute("the job")
    assert "unless restart-strategy.type is set" in notes_of(failure.value)[0]


class CannotBeRestored(Stumbling):
    """Loses its workers once, and finds that the checkpoint is damaged."""

    def __init__(self) -> None:
        super().__init__(lambda number: number == 3)

    def deploy(self, deployment, folder, on_loss):
        if self.tries:
            raise CorruptStateError("a file of the checkpoint is gone")
        super().deploy(deployment, folder, on_loss)


def test_a_restore_that_fails_in_the_same_way_is_given_up():
    master = job(CannotBeRestored(), False, **CHECKPOINTS)
    with pytest.raises(CorruptStateError) as failure:
        master.run()
    assert master.restarts == 1 + 3
    assert "it failed 4 times in the same way" in notes_of(failure.value)[0]


class LosesSpark(Stumbling):
    """From its third epoch with records on nothing works, as when Spark's Java process has ended."""

    def __init__(self) -> None:
        super().__init__(lambda number: number >= 3, lambda _: ConnectionRefusedError(111, "Connection refused"))

    def loss(self):
        return "Spark's Java process was killed by signal 9" if self.tries >= 3 else None

    def end_run(self) -> None:
        super().end_run()
        if self.tries >= 3:
            raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_job_is_suspended_with_its_checkpoints_when_spark_is_lost(tmp_path: Path, is_watched):
    master = job(LosesSpark(), is_watched, **CHECKPOINTS, **{"execution.checkpointing.dir": str(tmp_path)})
    with pytest.raises(JobExecutionError, match=r"was suspended: Spark's Java process was killed") as failure:
        LocalJobClient(master).start().wait()
    assert (master.status, master.restarts) == (JobStatus.SUSPENDED, 0)
    kept = [str(path.parent) for path in tmp_path.rglob("_metadata")]
    assert kept and f"penstock run -s {kept[-1]} ..." in str(failure.value)


def test_a_job_that_loses_spark_without_a_folder_for_checkpoints_says_so():
    with pytest.raises(JobExecutionError, match=r"gone with its process: execution.checkpointing.dir is not set"):
        LocalJobClient(job(LosesSpark(), False, **CHECKPOINTS)).start().wait()


def test_a_job_that_loses_spark_before_its_first_checkpoint_says_so():
    with pytest.raises(JobExecutionError, match="It has no checkpoint to continue from"):
        LocalJobClient(job(LosesSpark(), False)).start().wait()


@pytest.mark.parametrize(
    ("retention", "said", "is_kept"),
    [
        (
            "NO_EXTERNALIZED_CHECKPOINTS",
            "were removed: execution.checkpointing.externalized-checkpoint-retention",
            False,
        ),
        ("DELETE_ON_CANCELLATION", "is kept: `penstock run -s ", True),
    ],
)
def test_a_job_that_failed_says_what_has_become_of_its_checkpoints(tmp_path: Path, retention, said, is_kept):
    settings = {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.externalized-checkpoint-retention": retention,
    }
    master = job(Stumbling(lambda number: number >= 3), False, **CHECKPOINTS, **settings)
    with pytest.raises(PenstockError) as failure:
        master.run()
    note = notes_of(failure.value)[1]
    assert said in note
    assert [path for path in tmp_path.rglob("_metadata") if str(path.parent) in note] == (
        list(tmp_path.rglob("_metadata")) if is_kept else []
    )
    assert any(tmp_path.rglob("_metadata")) == is_kept


def test_temporary_checkpoints_are_said_to_be_gone():
    with pytest.raises(PenstockError) as failure:
        job(Stumbling(lambda number: number >= 3), False, **CHECKPOINTS).run()
    assert notes_of(failure.value)[1].endswith("execution.checkpointing.dir is not set.")
