"""A savepoint that a job has claimed is removed when it is no longer needed, whoever leads then; and not before."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_parts import RESTARTING, Numbered, RunningJob, environment, file_sink, job_of, numbers_in

from penstock.checkpoint.folders import folder_at
from penstock.checkpoint.leadership import JobLeadership
from penstock.common import Configuration, JobID, JobStatus
from penstock.common.exceptions import LeadershipLostError
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.testing import Fault, FaultPlan, FaultyFolder

LAST = 200


class Turns(JobLeadership):
    """What leaders leave for each other. The leader loses its lead when it confirms its n-th checkpoint."""

    def __init__(self) -> None:
        self.left = 10**9

    def reserve(self, checkpoint_id):
        self.used_ids = checkpoint_id

    def confirm(self, checkpoint_id, path):
        self.left -= 1
        if self.left < 0:
            raise LeadershipLostError("another one leads")
        self.checkpoint = path


def program(folder):
    env = environment()
    counts = env.from_sequence(1, LAST).key_by(lambda value: 0).process(Numbered())
    counts.sink_to(file_sink(folder / "out"))
    return env


def savepoint_of(folder):
    job = job_of(program(folder), RESTARTING | {"penstock.epoch.interval": "5 ms"}).start()
    return job.master.stop_with_savepoint(str(folder / "savepoints"), drain=False).result()


def leader(folder, savepoint, turns, *faults):
    settings = RESTARTING | {
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.claim-mode": "CLAIM",
    }
    plan = FaultPlan(str(folder / f"notes-{turns.used_ids}"), faults)
    graph = build_job_graph(program(folder).get_stream_graph(job_name="the job"))
    return RunningJob(
        JobMaster(
            JobID.from_hex_string("ab" * 16),
            graph,
            Configuration.from_dict(settings),
            InlineExecutor(),
            open_folder=lambda uri: FaultyFolder(folder_at(uri), plan),
            leadership=turns,
        )
    )


@pytest.mark.parametrize("removed", [0, 1, 2], ids=["nothing", "a file", "two files"])
@pytest.mark.parametrize("confirmed", [0, 1, 3])
def test_a_claimed_savepoint_goes_although_its_leader_dies_in_between(tmp_path, confirmed, removed):
    """When another one takes over, it has confirmed so many checkpoints, and removed so much of the savepoint."""
    savepoint = savepoint_of(tmp_path)
    place = Path(savepoint.removeprefix("file://"))
    files = len([path for path in place.rglob("*") if path.is_file()])
    turns = Turns()
    turns.left = confirmed
    first = leader(tmp_path, savepoint, turns, Fault("delete", at=removed + 1, times=10**6, path=f"{place}*"))
    first.start().join()
    assert first.master.status is JobStatus.SUSPENDED
    left = [path for path in place.rglob("*") if path.is_file()]
    assert len(left) == (files - min(removed, files) if confirmed else files), (
        "it is the only state until there is another"
    )

    turns.left = 10**9
    leader(tmp_path, savepoint, turns).start().join()
    assert numbers_in(tmp_path / "out") == list(range(1, LAST + 1))
    assert not [path for path in place.rglob("*") if path.is_file()]


def test_a_leader_that_finds_its_claimed_savepoint_removed_continues(tmp_path):
    savepoint = savepoint_of(tmp_path)
    turns = Turns()
    turns.left = 3
    leader(tmp_path, savepoint, turns).start().join()
    assert not Path(savepoint.removeprefix("file://")).exists()
    turns.left = 10**9
    leader(tmp_path, savepoint, turns).start().join()
    assert numbers_in(tmp_path / "out") == list(range(1, LAST + 1))
