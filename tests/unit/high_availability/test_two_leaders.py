"""Several job managers that all believe to lead, stopped and continued at any operation: results appear once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from taking_turns import Actor, TurnFolder, take_turn

from penstock.cluster.high_availability.fence import Fence
from penstock.cluster.high_availability.job_store import JobStore
from penstock.common.exceptions import LeadershipLostError
from penstock.jobmaster.job_submission import JobSubmission, ShippedDependencies
from penstock.testing import MemoryFolder

JOB = "0123456789abcdef" * 2
SUBMISSION = JobSubmission("ab" * 32, {}, ShippedDependencies(), False, False)
CHECKPOINTS = 3

Work = list[list[int]]
"""What a job has done: for each piece of work who did it, and its number. A checkpoint holds all up to then."""


class World:
    """A job that leaders continue; each works until it finds that it no longer leads, or the job is done."""

    def __init__(self) -> None:
        self.folder = TurnFolder(MemoryFolder())
        self.checkpoints = self.folder.within("checkpoints")
        self.shown: Work = []
        store = self._store(Fence(self.folder.within("fence"), 1))
        store.put(JOB, store.new_job(JOB), SUBMISSION, lambda blob: b"")

    def _store(self, fence: Fence) -> JobStore:
        fence.put_up()
        return JobStore(self.folder.within("jobs"), fence, self._folder_at)

    def _folder_at(self, uri: str) -> TurnFolder:
        return TurnFolder(MemoryFolder(uri, self.folder.folder.files))

    def lead(self, token: int) -> None:
        store = self._store(Fence(self.folder.within("fence"), token))
        for job_id in store.job_ids():
            job = store.adopt(job_id)
            if job is not None:
                self._run(token, job.leadership)
                store.remove(job_id)

    def _run(self, token: int, leadership) -> None:
        work: Work = [] if leadership.checkpoint is None else json.loads(self.checkpoints.read(leadership.checkpoint))
        self._commit(work)
        checkpoint_id, before = leadership.used_ids, leadership.checkpoint
        while len(work) < CHECKPOINTS:
            checkpoint_id += 1
            work = [*work, [token, len(work)]]
            name = f"chk-{checkpoint_id}"
            leadership.reserve(checkpoint_id)
            self.checkpoints.write(name, json.dumps(work).encode())
            leadership.confirm(checkpoint_id, name)
            self._commit(work)
            if before is not None:
                self.checkpoints.delete(before)
            before = name
        leadership.end("FINISHED", self.checkpoints.uri)
        self.checkpoints.delete_all()

    def _commit(self, work: Work) -> None:
        """Show all that was not shown before; what was shown must be a part of it, or the other way round."""
        take_turn()
        shared = min(len(work), len(self.shown))
        assert work[:shared] == self.shown[:shared], f"{self.shown} was shown, and now {work}"
        self.shown = max(work, self.shown, key=len)


def outcome(schedule: list[int], leaders: int, killed: set[int]) -> World:
    """Leaders take turns as planned; then some are killed, and the others come to their ends, one after the other."""
    world = World()
    actors = [Actor(lambda token=token: world.lead(token)) for token in range(2, leaders + 2)]
    for number in schedule:
        actors[number % leaders].step()
    for number in killed:
        actors[number].stop()
    for actor in actors:
        actor.finish()
    world.lead(leaders + 2)
    for actor in actors:
        if actor.failure is not None and not isinstance(actor.failure, (LeadershipLostError, FileNotFoundError)):
            raise actor.failure
    return world


def assert_is_done(world: World) -> None:
    assert [number for _, number in world.shown] == list(range(CHECKPOINTS))
    assert world.folder.within("jobs").names() == []


@settings(max_examples=400)
@given(
    schedule=st.lists(st.integers(0, 3), max_size=120),
    leaders=st.integers(1, 4),
    killed=st.sets(st.integers(0, 3)),
)
def test_work_is_shown_once_whoever_leads_and_whenever_it_is_stopped(schedule, leaders, killed):
    assert_is_done(outcome(schedule, leaders, {number for number in killed if number < leaders}))


@pytest.mark.parametrize("stopped_after", range(40))
def test_leader_that_sleeps_through_its_successor_shows_nothing_of_its_own(stopped_after):
    assert_is_done(outcome([0] * stopped_after + [1] * 200 + [0] * 200, 2, set()))


@pytest.mark.parametrize("stopped_after", range(40))
def test_leader_that_is_killed_at_any_moment_is_gone_on_with(stopped_after):
    assert_is_done(outcome([0] * stopped_after, 1, {0}))


@pytest.mark.parametrize("first", range(12, 30))
def test_leader_that_wakes_up_after_its_successor_was_killed_does_no_harm(first):
    for second in range(10, 35):
        assert_is_done(outcome([0] * first + [1] * second + [0] * 200, 2, {1}))
