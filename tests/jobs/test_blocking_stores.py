"""A job on Spark whose store or committer does not answer: it can be cancelled, and Spark is free for the next one."""

from __future__ import annotations

import threading

import pytest
from job_parts import file_sink

from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.job_status import JobStatus
from penstock.datastream.connectors.file_system.committer import FileCommitter

pytestmark = pytest.mark.spark

WITHIN_S = 120


@pytest.mark.parametrize(("owner", "name"), [(CompletedCheckpointStore, "add"), (FileCommitter, "commit")])
def test_job_is_cancelled_and_another_one_runs(on_spark, monkeypatch, tmp_path, owner, name):
    reached, may_return = threading.Event(), threading.Event()
    answer = getattr(owner, name)

    def block(*arguments):
        reached.set()
        assert may_return.wait(WITHIN_S)
        return answer(*arguments)

    settings = {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "task.cancellation.timeout": "2 s",
    }
    env = on_spark(2, settings)
    numbers = env.from_sequence(1, 10**12).key_by(lambda value: value % 7).reduce(lambda a, b: max(a, b))
    numbers.filter(lambda value: value % 1000 == 0).sink_to(file_sink(tmp_path / "out"))
    try:
        with monkeypatch.context() as blocked:
            blocked.setattr(owner, name, block)
            client = env.execute_async("blocked")
            assert reached.wait(WITHIN_S)
            client.cancel().result(WITHIN_S)
            assert client.get_job_status().result(WITHIN_S) is JobStatus.CANCELED
        assert sorted(on_spark(2).from_sequence(1, 5).rebalance().execute_and_collect()) == [1, 2, 3, 4, 5]
    finally:
        may_return.set()
