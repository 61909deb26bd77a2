"""Stores and callbacks that do not return: a job can still be cancelled, and nothing of it happens afterwards."""

from __future__ import annotations

import pytest
from job_parts import RESTARTING, Numbered, environment, file_sink, job_of, numbers_in

from penstock.checkpoint.folders import folder_at
from penstock.common.job_status import JobStatus
from penstock.testing import Fault, FaultPlan, FaultyFolder

ENDLESS = 10**9


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


def job_in(plan, folder, regions=1, **settings):
    env = environment()
    for region in range(regions):
        numbers = env.from_sequence(1, ENDLESS).key_by(lambda value: value % 7)
        numbers.process(Numbered()).sink_to(file_sink(folder / f"out-{region}"))
    stored = {"execution.checkpointing.dir": str(folder / "checkpoints")}
    return job_of(
        env, RESTARTING | stored | settings, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan)
    ).start()


@pytest.mark.parametrize("regions", [1, 2])
@pytest.mark.parametrize("store", sorted(STORES))
def test_job_is_cancelled_whatever_its_store_does(tmp_path, store, regions):
    plan = FaultPlan(str(tmp_path / "notes"), (STORES[store],))
    with plan.blocking():
        job = job_in(plan, tmp_path, regions)
        plan.wait_until_blocked()
        job.master.cancel()
        job.join()
        assert job.master.status is JobStatus.CANCELED
