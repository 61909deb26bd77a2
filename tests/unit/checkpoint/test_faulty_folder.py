"""A folder whose storage fails as planned, and not otherwise."""

from __future__ import annotations

import os
import pickle

import pytest

from penstock.checkpoint.folders import LocalFolder
from penstock.testing import Fault, FaultPlan, FaultyFolder, MemoryFolder
from penstock.testing.faulty_folder import EXIT_CODE


@pytest.fixture
def faulty(tmp_path):
    def make(*faults: Fault) -> FaultyFolder:
        folder = LocalFolder(str(tmp_path / "files"))
        folder.make()
        return FaultyFolder(folder, FaultPlan(str(tmp_path / "notes"), faults))

    return make


def exit_code_of(action) -> int:
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_without_faults_it_is_like_the_folder_behind_it(faulty):
    folder = faulty()
    inner = folder.within("inner")
    inner.make()
    inner.write("file", b"content")
    assert (inner.read("file"), inner.size("file"), folder.names()) == (b"content", 7, ["inner"])
    with inner.open("file") as content:
        assert content.read() == b"content"
    inner.delete("file")
    assert inner.names() == []
    folder.within("inner").delete_all()
    assert (folder.names(), folder.uri, folder.path_of("x")) == ([], folder.folder.uri, folder.folder.path_of("x"))


def test_operations_are_recorded_in_order(faulty):
    folder = faulty()
    folder.write("file", b"1")
    folder.read("file")
    kinds = [line.partition(" ")[0] for line in folder.plan.operations()]
    assert kinds == ["create", "write", "rename", "read"]


def test_only_the_planned_operation_fails(faulty):
    folder = faulty(Fault("create", at=2))
    folder.write("first", b"")
    with pytest.raises(OSError, match="planned fault: create"):
        folder.write("second", b"")
    folder.write("third", b"")
    assert sorted(folder.names()) == ["first", "third"]


def test_storage_is_away_for_a_while(faulty):
    folder = faulty(Fault("any", at=1, times=3))
    for ask in (folder.names, lambda: folder.read("x"), lambda: folder.delete("x")):
        with pytest.raises(OSError, match="planned fault"):
            ask()
    assert folder.names() == []


def test_fault_concerns_matching_paths_only(faulty):
    folder = faulty(Fault("create", path="*/_metadata"))
    folder.write("other", b"")
    with pytest.raises(OSError, match="_metadata"):
        folder.write("_metadata", b"")


@pytest.mark.parametrize("operation", ["create", "write", "rename"])
def test_file_that_fails_leaves_nothing(faulty, operation):
    folder = faulty(Fault(operation))
    with pytest.raises(OSError, match=f"planned fault: {operation}"):
        folder.write("file", b"content")
    assert folder.names() == []


def test_lost_answer_means_done_but_not_told(faulty):
    folder = faulty(Fault("rename", action="lose-answer"), Fault("delete", action="lose-answer"))
    with pytest.raises(OSError, match="planned fault: rename"):
        folder.write("file", b"content")
    assert folder.read("file") == b"content"
    with pytest.raises(OSError, match="planned fault: delete"):
        folder.delete("file")
    assert folder.names() == []


def test_half_of_a_write_and_a_changed_byte_go_unnoticed(faulty):
    folder = faulty(Fault("write", at=1, action="half"), Fault("write", at=2, action="damage"))
    folder.write("half", b"1234")
    folder.write("damaged", b"1234")
    assert folder.read("half") == b"12"
    damaged = folder.read("damaged")
    assert len(damaged) == 4 and damaged != b"1234"


def test_process_ends_in_the_middle_of_a_write(faulty):
    folder = faulty(Fault("write", action="exit"))
    assert exit_code_of(lambda: folder.write("file", b"1234")) == EXIT_CODE
    [partial] = folder.names()
    assert partial != "file" and folder.read(partial) == b"12"


def test_process_ends_after_a_rename(faulty):
    folder = faulty(Fault("rename", action="exit-after"))
    assert exit_code_of(lambda: folder.write("file", b"1234")) == EXIT_CODE
    assert folder.read("file") == b"1234"


def test_copies_count_together(faulty):
    folder = faulty(Fault("create", at=2))
    copy = pickle.loads(pickle.dumps(folder))
    folder.write("first", b"")
    with pytest.raises(OSError, match="planned fault"):
        copy.write("second", b"")


def test_slow_storage_does_its_work(tmp_path):
    folder = FaultyFolder(MemoryFolder(), FaultPlan(str(tmp_path), (Fault("any", action="slow", delay_s=0.001),)))
    folder.write("file", b"1")
    assert folder.read("file") == b"1"


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="counted from 1, got at=0"):
        Fault(at=0)
    with pytest.raises(ValueError, match="'half' is for operation 'write', got 'read'"):
        Fault("read", action="half")
