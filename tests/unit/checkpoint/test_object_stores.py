"""Checkpoints and savepoints in an object store, whose URI ends with how to reach it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from object_store import ObjectStore, object_store

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import folder_at
from penstock.checkpoint.savepoints import dispose_savepoint, write_savepoint
from penstock.testing import JobInEpochs


@pytest.fixture
def objects() -> Iterator[ObjectStore]:
    with object_store() as server:
        yield server


def counted(stream):
    return stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)


def test_job_continues_from_its_checkpoint_however_it_is_named(objects):
    job = JobInEpochs(counted, 2, folder=folder_at(objects.uri("jobs/one")))
    for _ in range(3):
        job.epoch(["a", "b"])
    job.close()
    assert objects.names("jobs/one/chk-") == ["jobs/one/chk-3/_metadata"]
    assert not [key for key in objects.names() if key.endswith("partial")]
    for path in ("jobs/one", "jobs/one/", "jobs/one/chk-3", "jobs/one/chk-3/_metadata"):
        found = find_checkpoint(objects.uri(path))
        assert (found.metadata.checkpoint_id, found.path) == (3, objects.uri("jobs/one/chk-3"))
        restored = JobInEpochs(counted, 1, restored=found)
        assert restored.epoch(["a"]) == ["('a', 4)"]
        restored.close()


@pytest.mark.parametrize("format_type", ["native", "canonical"])
def test_savepoint_is_written_read_and_disposed_of(objects, format_type):
    job = JobInEpochs(counted, 2, folder=folder_at(objects.uri("jobs/one")))
    job.epoch(["a", "b", "a"])
    job.close()
    path = write_savepoint(job.checkpoint, objects.uri("savepoints"), format_type)
    assert path.startswith(objects.uri("savepoints/savepoint-").partition("?")[0]) and path.endswith("scheme=http")
    restored = JobInEpochs(counted, 3, restored=find_checkpoint(path))
    assert restored.epoch(["a"]) == ["('a', 3)"]
    restored.close()
    dispose_savepoint(path)
    assert objects.names("savepoints/savepoint-") == []


def test_state_files_are_sent_once_and_neither_copied_nor_moved(objects):
    job = JobInEpochs(counted, 2, folder=folder_at(objects.uri("jobs/one")))
    job.epoch(["a"])
    objects.asked.clear()
    job.epoch(["a"])
    job.close()
    assert not [each for each in objects.asked if each.startswith("copy")]
    # Arrow itself marks the folder of what it removes, by a key with a slash at its end.
    written = [each.split()[1] for each in objects.asked if each.startswith("PUT") and not each.endswith("/")]
    assert len(written) == len(set(written)) and "jobs/one/chk-2/_metadata" in written
