"""Part files of checkpoints that fail: those of the result are shown by a later one, and the others stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_parts import RESTARTING, Numbered, environment, file_sink, job_of, numbers_in

from penstock.checkpoint.folders import folder_at
from penstock.common.serialization import Encoder
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.testing import Fault, FaultPlan, FaultyFolder

ENDS = 60
EXPECTED = sorted(number for key in range(7) for number in range(1, len(range(key, ENDS, 7)) + 1))
FAILS = ("*/_metadata", "*/shared/*")


def rolling_by_size(folder):
    """Files stay open over checkpoints, and are continued after them."""
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=30))
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


SINKS = {"rolling with checkpoints": file_sink, "rolling by size": rolling_by_size}


def run(folder, sink, faults, tolerated):
    env = environment()
    env.from_sequence(0, ENDS - 1).key_by(lambda value: value % 7).process(Numbered()).sink_to(sink(folder / "out"))
    plan = FaultPlan(str(folder / "notes"), faults)
    stored = {
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.tolerable-failed-checkpoints": str(tolerated),
    }
    job = job_of(env, RESTARTING | stored, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan))
    job.start().join()
    return job.master


def hidden_in(folder):
    return [path for path in (Path(folder) / "out").rglob(".*") if path.is_file()]


@pytest.mark.parametrize("sink", sorted(SINKS))
@pytest.mark.parametrize("path", FAILS)
def test_files_of_a_tolerated_failure_are_shown_with_the_next_checkpoint(tmp_path, path, sink):
    master = run(tmp_path, SINKS[sink], (Fault("write", at=3, times=2, path=path),), tolerated=5)
    assert master.restarts == 0 and master.checkpoints.counts()["failed"]
    assert numbers_in(tmp_path / "out") == EXPECTED
    assert hidden_in(tmp_path) == []


@pytest.mark.parametrize("sink", sorted(SINKS))
@pytest.mark.parametrize("path", FAILS)
def test_files_of_an_attempt_that_failed_stay_hidden(tmp_path, path, sink):
    master = run(tmp_path, SINKS[sink], (Fault("write", at=3, times=2, path=path),), tolerated=0)
    assert master.restarts > 0
    assert numbers_in(tmp_path / "out") == EXPECTED
    # They were prepared for a checkpoint that may have been on its way: as in Flink, nobody removes them.
    assert hidden_in(tmp_path)


@settings(max_examples=10, deadline=None)
@given(
    sink=st.sampled_from(sorted(SINKS)),
    tolerated=st.integers(0, 2),
    faults=st.lists(
        st.builds(
            Fault,
            st.sampled_from(["create", "write", "rename"]),
            at=st.integers(1, 12),
            times=st.integers(1, 3),
            path=st.sampled_from(FAILS),
            action=st.sampled_from(["fail", "lose-answer"]),
        ),
        max_size=3,
    ),
)
def test_result_is_exact_whichever_checkpoints_fail(tmp_path_factory, sink, tolerated, faults):
    folder = tmp_path_factory.mktemp("job")
    run(folder, SINKS[sink], tuple(faults), tolerated)
    assert numbers_in(folder / "out") == EXPECTED
