"""Working state lies in folders that belong to one process and go with it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.local_folders import new_local_folder, new_socket_folder
from penstock.runtime.state.backends import DiskBackend
from penstock.runtime.state.table import VOID_NAMESPACE

OTHER_PROCESS = """
import sys
from pathlib import Path
from penstock.common.local_folders import new_local_folder, new_socket_folder
new_local_folder(Path(sys.argv[1]), "state").joinpath("data").write_text("x")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    started = subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert started.stdout.readline() == b"ready\n"
    yield started
    started.kill()
    started.communicate()


def folders_in(folder) -> set[str]:
    return {path.name.split("-")[0] for path in folder.glob("penstock-files-*/*")}


def test_every_folder_is_a_new_one(tmp_path):
    first, second = new_local_folder(tmp_path, "run/v1 s0"), new_local_folder(tmp_path, "run/v1 s0")
    assert first != second and first.is_dir() and second.is_dir()
    assert first.name.startswith("run_v1_s0-")
    assert folders_in(tmp_path) == {str(os.getpid())}


def test_folders_of_a_process_that_lives_are_left_alone(tmp_path, other_process):
    new_local_folder(tmp_path, "mine")
    assert folders_in(tmp_path) == {str(os.getpid()), str(other_process.pid)}


def test_folders_of_a_process_that_was_killed_are_removed(tmp_path, other_process):
    other_process.kill()
    other_process.wait()
    new_local_folder(tmp_path, "mine")
    assert folders_in(tmp_path) == {str(os.getpid())}


def test_what_cannot_be_removed_yet_is_left_for_the_next_process(tmp_path, other_process, monkeypatch):
    other_process.kill()
    other_process.wait()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)  # A process that it has started writes there still.
        new_local_folder(tmp_path, "mine")
    assert folders_in(tmp_path) == {str(os.getpid()), str(other_process.pid)}
    code = OTHER_PROCESS.replace("sys.stdin.read()", "")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert folders_in(tmp_path) == {str(os.getpid())}


def test_a_process_that_ends_leaves_nothing_behind(tmp_path, other_process):
    other_process.communicate(b"")
    assert folders_in(tmp_path) == set()


def test_a_folder_that_others_can_enter_is_refused(tmp_path):
    (tmp_path / f"penstock-files-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(EnvironmentSetupError, match=r"must belong to user .* alone"):
        new_local_folder(tmp_path, "mine")


@pytest.mark.parametrize(("namespace", "file"), [("n", "data.mdb"), (VOID_NAMESPACE, "records-1")])
def test_a_file_that_is_forgotten_is_removed(tmp_path, namespace, file):
    open_before = os.listdir("/proc/self/fd")
    table = DiskBackend((str(tmp_path),), cache_entries=1).tables("run", "s0", "op")("t")
    for number in range(10):
        table.put(namespace, number, number)
    assert len(list(tmp_path.rglob(file))) == 1
    del table
    gc.collect()
    assert list(tmp_path.rglob(file)) == []
    assert len(os.listdir("/proc/self/fd")) <= len(open_before) + 1, "the lock of the process's folder"


def test_subtasks_use_all_folders(tmp_path):
    folders = tuple(str(tmp_path / name) for name in ("a", "b"))
    for number in range(20):
        table = DiskBackend(folders, cache_entries=1).tables("run", f"s{number}", "op")("t")
        for key in range(10):
            table.put("n", key, key)
        assert table.get("n", 1) == 1
    assert [len(list((tmp_path / name).glob("penstock-files-*"))) for name in ("a", "b")] == [1, 1]


def test_folder_for_sockets_has_a_short_name_although_the_temporary_folder_has_a_long_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert new_socket_folder("s", 1000).is_relative_to(tmp_path)
    short = new_socket_folder("s", 60)
    assert len(str(short)) <= 60 and not short.is_relative_to(tmp_path)
    assert folders_in(tmp_path) == {str(os.getpid())} and len(list(tmp_path.glob("penstock-files-*/*/s-*"))) == 1


def test_a_worker_removes_what_it_has_made_because_nothing_runs_at_its_end(tmp_path):
    program = (
        "import os, sys; from pathlib import Path\n"
        "from penstock.common.local_folders import new_local_folder, remove_own_folders\n"
        "first = new_local_folder(Path(sys.argv[1]), 'state')\n"
        "remove_own_folders()\n"
        "assert not first.exists() and new_local_folder(Path(sys.argv[1]), 'state').exists(), 'it can have others'\n"
        "remove_own_folders()\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert folders_in(tmp_path) == set()
