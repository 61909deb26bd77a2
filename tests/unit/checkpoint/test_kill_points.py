"""A job that dies at any point, is started again and ends with the result of one that never died.

Each case runs the all-round job in a child process that ends as by kill -9 at a named point, and then again from what
the first run has left, at the same and at other parallelisms, with both state backends.
"""

from __future__ import annotations

import pytest
from chaos.all_round_job import POINTS
from crashing_job import CrashingJob, Start
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.testing import Fault

pytest.importorskip("lmdb")  # Before the children: each would load it again.

FIRST_RUN = [point for point in POINTS if point not in ("restore", "abort")]
"""Points that a run reaches to which nothing happens."""
SHARED, METADATA = "*/shared/*", "*/_metadata"
STORAGE = {
    "before the first state file": Fault("create", path=SHARED, action="exit"),
    "within a state file of the first epoch": Fault("write", at=4, path=SHARED, action="exit"),
    "within a state file of a later epoch": Fault("write", at=80, path=SHARED, action="exit"),
    "before a state file gets its name": Fault("rename", at=20, path=SHARED, action="exit"),
    "after the first state files, before their metadata": Fault("create", path=METADATA, action="exit"),
    "within the metadata": Fault("write", at=2, path=METADATA, action="exit"),
    "before the metadata gets its name": Fault("rename", at=2, path=METADATA, action="exit"),
    "after the first metadata, before any commit": Fault("rename", at=1, path=METADATA, action="exit-after"),
    "after later metadata, before their commit": Fault("rename", at=3, path=METADATA, action="exit-after"),
    "before an old checkpoint is removed": Fault("delete", at=1, action="exit"),
    "between an old checkpoint's metadata and its files": Fault("delete", at=2, action="exit"),
}
BACKENDS = ["hashmap", "rocksdb"]


@pytest.fixture(scope="module")
def counts(tmp_path_factory) -> dict[str, int]:
    """How often an undisturbed run reaches each point."""
    job = CrashingJob(tmp_path_factory.mktemp("counts"))
    assert job.run(Start(die_at=tuple(f"{point}:1000000" for point in FIRST_RUN))) == []
    return job.counts()


def times(which: str, count: int) -> int:
    return {"first": 1, "last": count}[which]


@pytest.mark.parametrize(("parallelism", "backend"), [(1, "hashmap"), (2, "rocksdb"), (3, "hashmap")])
@pytest.mark.parametrize("point", STORAGE)
def test_death_in_the_storage_changes_nothing(tmp_path, point, parallelism, backend):
    job = CrashingJob(tmp_path)
    kept = {"state.backend.type": backend}
    assert job.run(Start((STORAGE[point],), settings=kept), Start(parallelism=parallelism, settings=kept)) == []
    assert job.deaths == 1


@pytest.mark.parametrize(("which", "parallelism", "backend"), [("first", 3, "rocksdb"), ("last", 2, "hashmap")])
@pytest.mark.parametrize("point", FIRST_RUN)
def test_death_in_a_function_changes_nothing(tmp_path, counts, point, which, parallelism, backend):
    job = CrashingJob(tmp_path)
    kept = {"state.backend.type": backend}
    dying = Start(die_at=(f"{point}:{times(which, counts[point])}",), settings=kept)
    assert job.run(dying, Start(parallelism=parallelism, settings=kept)) == []
    assert job.deaths == 1


@pytest.mark.parametrize("again", [1, 2, 3])
@pytest.mark.parametrize(
    "death",
    [
        Start(die_at=("restore:1",)),
        Start((Fault("read", at=3, action="exit"),)),
        Start((Fault("read", at=30, action="exit"),)),
        Start((Fault("create", path=METADATA, action="exit"),)),
        Start((Fault("rename", path=METADATA, action="exit-after"),)),
        Start(die_at=("before-commit:1",)),
        Start(die_at=("before-file-commit:1",)),
    ],
    ids=["restore", "first-read", "later-read", "before-metadata", "after-metadata", "commit", "file-commit"],
)
def test_death_during_recovery_changes_nothing(tmp_path, death, again):
    """The second start dies while it is restored, or with its first checkpoint, and so does the third."""
    job = CrashingJob(tmp_path)
    first = Start((Fault("create", at=3, path=METADATA, action="exit"),))
    second = Start(death.faults, death.die_at, parallelism=again)
    assert job.run(first, second, second, Start(parallelism=2)) == []
    assert job.deaths == 3


def test_change_of_backend_between_death_and_restart_changes_nothing(tmp_path):
    death = Fault("create", at=2, path=METADATA, action="exit")
    kept = [{"state.backend.type": backend} for backend in ["rocksdb", "hashmap", "rocksdb"]]
    job = CrashingJob(tmp_path)
    assert job.run(*(Start((death,), settings=each) for each in kept)) == []
    assert job.deaths == 3


def test_region_commits_nothing_before_the_restored_job_has_a_checkpoint_of_its_own(tmp_path):
    """The job dies when one region has saved what it was restored with, and the other has not: both must do it again.

    At a lower parallelism a sink finishes files in its first epoch. Shown now, they would be missing at the next start.
    """
    job = CrashingJob(tmp_path, has_other_region=True)
    other_region = "*/shared/v8-*"
    slowly = Fault("create", path=other_region, action="slow", delay_s=0.3)
    starts = [
        Start((Fault("create", at=6, path=METADATA, action="exit"),), parallelism=3),
        Start((slowly, Fault("rename", path=other_region, action="exit")), parallelism=1),
        Start(parallelism=2),
    ]
    assert job.run(*starts) == []
    assert job.deaths == 2


def deaths_anywhere() -> st.SearchStrategy[Start]:
    storage = st.builds(
        lambda at, action: Start((Fault("any", at=at, action=action),)),
        st.integers(1, 500),
        st.sampled_from(["exit", "exit-after"]),
    )
    functions = st.builds(
        lambda point, at: Start(die_at=(f"{point}:{at}",)),
        st.sampled_from(POINTS),
        st.integers(1, 30),
    )
    return st.builds(
        lambda start, parallelism, backend, interval: Start(
            start.faults,
            start.die_at,
            parallelism,
            {"state.backend.type": backend, "execution.checkpointing.interval": interval},
        ),
        st.one_of(storage, functions),
        st.integers(1, 3),
        st.sampled_from(BACKENDS),
        st.sampled_from(["1 ms", "15 ms", "40 ms"]),
    )


@settings(max_examples=15)
@given(starts=st.lists(deaths_anywhere(), min_size=1, max_size=4), has_other_region=st.booleans())
def test_any_number_of_deaths_anywhere_changes_nothing(tmp_path_factory, starts, has_other_region):
    job = CrashingJob(tmp_path_factory.mktemp("job"), has_other_region=has_other_region)
    assert job.run(*starts) == []


def failures_anywhere() -> st.SearchStrategy[Start]:
    """Nobody dies: storage that is away for a while, says wrongly that it failed, and functions that raise."""
    faults = st.builds(
        lambda operation, at, times, action: Fault(operation, at=at, times=times, action=action),
        st.sampled_from(["any", "read", "list", "delete", "create", "rename"]),
        st.integers(10, 400),
        st.integers(1, 20),
        st.sampled_from(["fail", "lose-answer"]),
    )
    points = st.builds(lambda point, at: f"{point}:{at}:raise", st.sampled_from(POINTS), st.integers(1, 30))
    return st.builds(
        lambda faults, points, parallelism, interval, tolerable: Start(
            tuple(faults),
            tuple(points),
            parallelism,
            {
                "execution.checkpointing.interval": interval,
                "execution.checkpointing.tolerable-failed-checkpoints": tolerable,
                "restart-strategy.fixed-delay.attempts": "1000",
                "restart-strategy.fixed-delay.delay": "0 ms",
            },
        ),
        st.lists(faults, max_size=3),
        st.lists(points, max_size=3),
        st.integers(1, 3),
        st.sampled_from(["1 ms", "15 ms"]),
        st.sampled_from(["0", "1", "5"]),
    )


@settings(max_examples=15)
@given(starts=st.lists(st.one_of(failures_anywhere(), deaths_anywhere()), min_size=1, max_size=2))
def test_failures_and_deaths_together_change_nothing(tmp_path_factory, starts):
    job = CrashingJob(tmp_path_factory.mktemp("job"), has_other_region=True)
    assert job.run(*starts) == []
