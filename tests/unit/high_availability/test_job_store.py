"""What a leader leaves for the next one."""

from __future__ import annotations

import json

import pytest

from penstock.cluster.high_availability.fence import Fence
from penstock.cluster.high_availability.job_store import JobStore
from penstock.common.exceptions import CorruptStateError, LeadershipLostError
from penstock.jobmaster.job_submission import JobSubmission, ShippedDependencies
from penstock.testing import Fault, FaultPlan, FaultyFolder, MemoryFolder

JOB = "0123456789abcdef" * 2
GRAPH = "ab" * 32
SUBMISSION = JobSubmission(GRAPH, {"parallelism.default": "2"}, ShippedDependencies(), True, False)


@pytest.fixture
def folder() -> MemoryFolder:
    return MemoryFolder()


def leader(folder, token: int) -> JobStore:
    fence = Fence(folder.within("fence"), token)
    fence.put_up()
    return JobStore(folder.within("jobs"), fence, open_folder=lambda uri: MemoryFolder(uri, folder.files))


def put(store: JobStore, job_id: str = JOB):
    leadership = store.new_job(job_id)
    store.put(job_id, leadership, SUBMISSION, lambda blob: f"content of {blob}".encode())
    return leadership


def test_next_leader_gets_the_job_as_it_was_submitted(folder):
    put(leader(folder, 1))
    store = leader(folder, 2)
    assert store.job_ids() == [JOB]
    job = store.adopt(JOB)
    assert (job.job_id, job.submission, job.leadership.checkpoint) == (JOB, SUBMISSION, None)
    assert job.read_blob(GRAPH) == f"content of {GRAPH}".encode()


def test_next_leader_continues_from_the_last_confirmed_checkpoint_with_ids_that_are_new(folder):
    first = put(leader(folder, 1))
    first.reserve(3)
    first.confirm(3, "chk-3")
    first.confirm(7, "chk-7")
    first.reserve(2000)
    second = leader(folder, 2).adopt(JOB).leadership
    assert second.checkpoint == "chk-7" and second.used_ids >= 2000
    third = leader(folder, 3).adopt(JOB).leadership
    assert third.checkpoint == "chk-7" and third.used_ids == second.used_ids


def test_leader_whose_successor_has_begun_can_do_nothing_any_more(folder):
    first = put(leader(folder, 1))
    first.confirm(1, "chk-1")
    leader(folder, 2)
    for act in (
        lambda: first.confirm(2, "chk-2"),
        lambda: first.reserve(5000),
        lambda: first.end("FINISHED", "memory:/checkpoints"),
        first.check,
    ):
        with pytest.raises(LeadershipLostError, match="leadership 1 has ended: another process has leadership 2"):
            act()


def test_what_a_former_leader_writes_after_the_job_was_adopted_does_not_count(folder):
    first = put(leader(folder, 1))
    first.confirm(1, "chk-1")
    leader(folder, 2).adopt(JOB)
    for act in (lambda: first.confirm(2, "chk-2"), lambda: first.end("FINISHED", None)):
        with pytest.raises(LeadershipLostError):
            act()
    assert leader(folder, 3).adopt(JOB).leadership.checkpoint == "chk-1"


def test_who_begins_to_lead_after_a_later_one_has_begun_does_not_lead(folder):
    leader(folder, 2)
    with pytest.raises(LeadershipLostError):
        leader(folder, 1)


def test_job_that_is_over_is_not_gone_on_with_and_what_is_left_of_it_is_removed(folder):
    checkpoints = folder.within("checkpoints")
    checkpoints.write("chk-1/_metadata", b"{}")
    put(leader(folder, 1)).end("FINISHED", checkpoints.uri)
    store = leader(folder, 2)
    assert store.adopt(JOB) is None
    assert store.job_ids() == [] and checkpoints.names() == []


def test_checkpoints_that_are_wanted_stay_when_the_job_is_over(folder):
    checkpoints = folder.within("checkpoints")
    checkpoints.write("chk-1/_metadata", b"{}")
    put(leader(folder, 1)).end("CANCELED", None)
    assert leader(folder, 2).adopt(JOB) is None
    assert checkpoints.names() == ["chk-1"]


def test_removed_job_is_gone(folder):
    store = leader(folder, 1)
    put(store).end("FAILED", None)
    store.remove(JOB)
    assert store.job_ids() == []
    assert leader(folder, 2).adopt(JOB) is None


def test_job_that_a_former_leader_took_in_too_late_is_refused_and_does_not_run_later(folder):
    first = leader(folder, 1)
    leader(folder, 2)
    with pytest.raises(LeadershipLostError):
        put(first)
    store = leader(folder, 3)
    assert [store.adopt(job) for job in store.job_ids()] == [None]
    assert store.job_ids() == []


def test_job_whose_files_did_not_all_arrive_is_no_job(folder, tmp_path):
    faulty = FaultyFolder(folder, FaultPlan(str(tmp_path), (Fault("create", path="*submission"),)))
    with pytest.raises(OSError, match="planned fault"):
        put(leader(faulty, 1))
    assert leader(folder, 2).adopt(JOB) is None


def test_end_of_a_job_is_written_down_as_soon_as_the_storage_is_back(folder, tmp_path):
    faulty = FaultyFolder(folder, FaultPlan(str(tmp_path), (Fault("create", at=2, times=3, path="*record-*"),)))
    leadership = put(leader(faulty, 1))
    pauses: list[float] = []
    leadership._pause = pauses.append
    leadership.end("FINISHED", None)
    assert len(pauses) == 3
    assert leader(folder, 2).adopt(JOB) is None


def test_storage_that_is_gone_is_not_taken_for_one_where_nobody_else_leads(folder):
    first = put(leader(folder, 1))
    folder.within("fence").delete_all()
    with pytest.raises(FileNotFoundError, match="by which a leader knows that it leads"):
        first.confirm(1, "chk-1")


def test_damaged_record_is_reported_with_what_to_do(folder):
    put(leader(folder, 1))
    jobs = folder.within("jobs").within(JOB)
    (record,) = [name for name in jobs.names() if name.startswith("record-")]
    jobs.write(record, json.dumps({"river": 1}).encode())
    with pytest.raises(CorruptStateError, match=r"record-0*1 is not what a leader wrote .* remove the folder it is in"):
        leader(folder, 2).adopt(JOB)
