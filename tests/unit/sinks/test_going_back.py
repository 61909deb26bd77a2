"""Starting from the same savepoint a second time, after another run has continued from it."""

from __future__ import annotations

import pytest
from job_parts import PATIENCE_S, RESTARTING, Counting, environment, job_of, numbers_in, wait_until

from penstock.common import Encoder
from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy

SETTINGS = {**RESTARTING, "restart-strategy.fixed-delay.attempts": "1"}
ENDLESS = 10**9


def job(folder, policy, end, restored=None):
    env = environment()
    builder = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).with_rolling_policy(policy)
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    env.add_source(Counting(0, end)).uid("numbers").sink_to(sink).uid("files")
    return job_of(env, SETTINGS if restored is None else {**SETTINGS, "execution.state-recovery.path": restored})


def savepoint_of(folder, policy):
    """Taken when something was written; the numbers before it."""
    running = job(folder, policy, ENDLESS).start()
    wait_until(lambda: any((folder / "out").rglob("*part-*")))
    path = running.master.stop_with_savepoint(str(folder / "savepoints"), drain=False).result(PATIENCE_S)
    running.join()
    return path, len(numbers_in(folder / "out"))


def test_with_files_that_end_with_checkpoints_a_savepoint_can_be_used_again(tmp_path):
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    path, before = savepoint_of(tmp_path, policy)
    end = before + 30
    job(tmp_path, policy, end, path).start().join()
    assert numbers_in(tmp_path / "out") == list(range(end))
    job(tmp_path, policy, end, path).start().join()
    # What the first run has shown stays.
    assert numbers_in(tmp_path / "out") == sorted([*range(end), *range(before, end)])


def test_with_files_that_stay_open_it_is_refused_with_what_to_do(tmp_path):
    policy = RollingPolicy.default_rolling_policy()
    path, _ = savepoint_of(tmp_path, policy)
    job(tmp_path, policy, 1, path).start().join()
    with pytest.raises(JobExecutionError, match=r"but it is gone; .* with RollingPolicy.on_checkpoint_rolling_policy"):
        job(tmp_path, policy, 1, path).start().join()
