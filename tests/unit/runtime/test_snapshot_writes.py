"""State files of a process are written side by side, and acknowledged when they are there."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from penstock.runtime import snapshot_writes
from penstock.runtime.snapshot_writes import SnapshotWrites
from penstock.testing import Fault, FaultPlan, FaultyFolder, JobInEpochs, MemoryFolder

PATIENCE_S = 30


@pytest.mark.parametrize("most", [0, 10, 1 << 20])
def test_file_is_the_same_however_large(monkeypatch, most):
    monkeypatch.setattr(snapshot_writes, "_IN_MEMORY", most)
    folder, writes = MemoryFolder(), SnapshotWrites()

    def fill(out):
        for part in (b"a" * 7, b"", b"b" * 7, b"c"):
            assert out.write(part) == len(part)

    writes.write(lambda: folder.create("file"), fill).result(PATIENCE_S)
    assert folder.read("file") == b"a" * 7 + b"b" * 7 + b"c"
    writes.close()


@pytest.mark.parametrize("most", [0, 1 << 20])
@pytest.mark.parametrize("operation", ["create", "write", "rename"])
def test_failure_of_the_store_is_raised_by_the_future(monkeypatch, tmp_path, most, operation):
    monkeypatch.setattr(snapshot_writes, "_IN_MEMORY", most)
    folder = FaultyFolder(MemoryFolder(), FaultPlan(str(tmp_path), (Fault(operation),)))
    writes = SnapshotWrites()
    with pytest.raises(OSError, match=f"planned fault: {operation}"):
        writes.write(lambda: folder.create("file"), lambda out: out.write(b"content")).result(PATIENCE_S)
    writes.close()


def test_what_cannot_be_filled_is_no_failure_of_the_store():
    def fill(out):
        raise TypeError("cannot pickle it")

    with pytest.raises(TypeError, match="cannot pickle"):
        SnapshotWrites().write(lambda: MemoryFolder().create("file"), fill)


class AllAtOnce(MemoryFolder):
    """State files are complete only when so many are being written at the same time."""

    together = threading.Barrier(1)

    def within(self, name):
        return AllAtOnce(self.path_of(name), self.files)

    @contextmanager
    def create(self, name):
        with super().create(name) as out:
            yield out
        if name.startswith("shared/"):
            self.together.wait(PATIENCE_S)


def counted(stream):
    return stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)


def test_subtasks_of_a_worker_do_not_wait_for_each_others_files(monkeypatch):
    monkeypatch.setattr(AllAtOnce, "together", threading.Barrier(7))  # The source, three maps, three counts.
    job = JobInEpochs(counted, 3, folder=AllAtOnce())
    assert job.epoch(["a", "b", "a"]) == ["('a', 1)", "('a', 2)", "('b', 1)"]
    assert len(job.checkpoint.metadata.handles()) == 7
    job.close()


def test_checkpoint_of_which_one_file_cannot_be_written_fails_and_the_next_one_has_it_all(tmp_path):
    plan = FaultPlan(str(tmp_path), (Fault("rename", at=2, path="*/shared/v1-*"),))
    job = JobInEpochs(counted, 2, folder=FaultyFolder(MemoryFolder(), plan))
    with pytest.raises(Exception, match="planned fault: rename"):
        job.epoch(["a", "b", "c", "d"])
    assert sum(ack.snapshot_failure is not None for ack in job.acks) == 1
    job.epoch(["a"])
    job.close()
    restored = JobInEpochs(counted, 1, restored=job.checkpoint)
    assert restored.epoch(["a", "b", "c", "d"]) == ["('a', 3)", "('b', 2)", "('c', 2)", "('d', 2)"]
    restored.close()
