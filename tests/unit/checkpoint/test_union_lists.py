"""Union lists: after every restore each subtask has the items of all, also if nothing has changed."""

from __future__ import annotations

import pytest

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.savepoints import write_savepoint
from penstock.datastream import MapFunction
from penstock.datastream.functions import CheckpointedFunction
from penstock.datastream.state import ListStateDescriptor
from penstock.testing import JobInEpochs


class Seen(MapFunction, CheckpointedFunction):
    """Keeps what it saw, twice; shows what it was restored with."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self._union = store.get_union_list_state(ListStateDescriptor("union"))
        self._split = store.get_list_state(ListStateDescriptor("split"))
        self._found = sorted(self._union.get()), sorted(self._split.get())
        self._seen = list(self._split.get())

    def snapshot_state(self, context):
        self._union.update(self._seen)
        self._split.update(self._seen)

    def map(self, value):
        self._seen.append(value)
        return self._found


def build(stream):
    return stream.rebalance().map(Seen()).uid("seen")


def test_restarted_subtasks_have_the_items_of_all():
    job = JobInEpochs(build, 2)
    job.epoch([1, 2, 3, 4])
    job.fail()
    assert job.epoch([5, 6]) == ["([1, 2, 3, 4], [1, 3])", "([1, 2, 3, 4], [2, 4])"]


def test_items_of_a_subtask_do_not_pile_up_when_it_saves_only_its_own():
    job = JobInEpochs(build, 2)
    for _ in range(3):
        job.epoch([1, 2])
        job.fail()
    assert job.epoch([0, 0]) == ["([1, 1, 1, 2, 2, 2], [1, 1, 1])", "([1, 1, 1, 2, 2, 2], [2, 2, 2])"]


@pytest.mark.parametrize("format_type", ["canonical", "native"])
def test_same_job_continues_from_a_savepoint_with_the_items_of_all(tmp_path, format_type):
    job = JobInEpochs(build, 2, folder=LocalFolder(str(tmp_path / "job")))
    job.epoch([1, 2, 3, 4])
    path = write_savepoint(job.checkpoint, str(tmp_path / "savepoints"), format_type)
    after = JobInEpochs(build, 2, restored=find_checkpoint(path))
    assert after.epoch([5, 6]) == ["([1, 2, 3, 4], [1, 3])", "([1, 2, 3, 4], [2, 4])"]
