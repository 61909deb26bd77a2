"""Savepoints as folders: written whole or not at all, movable, and removed only if they are savepoints."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from crashing_job import in_child

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.savepoints import dispose_savepoint, write_savepoint, write_savepoint_of
from penstock.common.exceptions import CheckpointError, CorruptStateError
from penstock.testing import JobInEpochs

FORMATS = ["canonical", "native"]


def summed(stream):
    return stream.key_by(lambda value: value % 3).reduce(lambda a, b: a + b).uid("sums")


@pytest.fixture
def folder(tmp_path) -> LocalFolder:
    return LocalFolder(str(tmp_path / "job"))


@pytest.fixture
def job(folder) -> JobInEpochs:
    """Has a base and two deltas."""
    job = JobInEpochs(summed, 2, folder=folder)
    for _ in range(3):
        job.epoch([1, 2, 3])
    return job


def place(tmp_path: Path) -> str:
    return str(tmp_path / "savepoints")


def assert_goes_on(found, parallelism: int = 3) -> None:
    assert JobInEpochs(summed, parallelism, restored=found).epoch([1, 2, 3]) == ["12", "4", "8"]


@pytest.mark.parametrize("format_type", FORMATS)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_job_continues_from_a_savepoint(job, tmp_path, format_type, parallelism):
    path = write_savepoint(job.checkpoint, place(tmp_path), format_type)
    shutil.rmtree(job.folder.path)
    found = find_checkpoint(path)
    assert (found.metadata.savepoint_format, found.metadata.checkpoint_id) == (format_type, 3)
    assert_goes_on(found, parallelism)


@pytest.mark.parametrize("format_type", FORMATS)
def test_savepoint_can_be_moved(job, tmp_path, format_type):
    path = write_savepoint(job.checkpoint, place(tmp_path), format_type)
    moved = shutil.move(path.removeprefix("file://"), tmp_path / "elsewhere")
    assert_goes_on(find_checkpoint(str(moved)))


def test_name_says_which_job_it_is_of(job, tmp_path):
    [name] = (Path(write_savepoint(job.checkpoint, place(tmp_path))).name,)
    assert name.startswith("savepoint-000000-") and len(name) == len("savepoint-000000-") + 12


def test_each_savepoint_has_a_folder_of_its_own(job, tmp_path):
    paths = {write_savepoint(job.checkpoint, place(tmp_path)) for _ in range(3)}
    assert len(paths) == 3


def test_unknown_format_is_refused(job, tmp_path):
    with pytest.raises(CheckpointError, match="savepoint format 'xml' is not known; use canonical or native"):
        write_savepoint(job.checkpoint, place(tmp_path), "xml")
    assert not Path(place(tmp_path)).exists()


@pytest.mark.parametrize("format_type", FORMATS)
def test_savepoint_that_fails_leaves_nothing(job, tmp_path, format_type):
    def copy_some(copies):
        first, *_ = copies
        first()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_savepoint(job.checkpoint, place(tmp_path), format_type, copy_some)
    assert os.listdir(place(tmp_path)) == []


@pytest.mark.parametrize("format_type", FORMATS)
def test_savepoint_that_was_cut_short_is_none(job, tmp_path, format_type):
    """The process dies between the state and the metadata."""

    def copy_and_die(copies):
        for copy in copies:
            copy()
        os._exit(9)

    died = in_child(
        lambda: write_savepoint(job.checkpoint, place(tmp_path), format_type, copy_and_die), tmp_path / "error"
    )
    [left] = Path(place(tmp_path)).iterdir()
    assert died == 9 and any(left.iterdir())
    with pytest.raises(CheckpointError, match=f"no checkpoint or savepoint at {left}"):
        find_checkpoint(str(left))
    assert_goes_on(find_checkpoint(job.folder.path))


# --- of stopped jobs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_type", FORMATS)
def test_savepoint_of_a_job_that_is_gone(job, tmp_path, format_type):
    path = write_savepoint_of(job.folder.path, place(tmp_path), format_type)
    assert_goes_on(find_checkpoint(path))


def test_native_savepoint_becomes_a_canonical_one(job, tmp_path):
    native = write_savepoint(job.checkpoint, place(tmp_path), "native")
    canonical = write_savepoint_of(native, place(tmp_path), "canonical")
    assert find_checkpoint(canonical).metadata.savepoint_format == "canonical"
    assert_goes_on(find_checkpoint(canonical))


def test_canonical_savepoint_is_one_already(job, tmp_path):
    path = write_savepoint(job.checkpoint, place(tmp_path))
    with pytest.raises(CheckpointError, match="is a savepoint already; copy its folder, it can be moved"):
        write_savepoint_of(path, place(tmp_path))


# --- removing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_type", FORMATS)
@pytest.mark.parametrize("form", ["{}", "{}/_metadata"])
def test_disposed_savepoint_is_gone(job, tmp_path, format_type, form):
    kept, path = (write_savepoint(job.checkpoint, place(tmp_path), format_type) for _ in range(2))
    dispose_savepoint(form.format(path))
    assert os.listdir(place(tmp_path)) == [Path(kept).name]


def test_checkpoint_is_not_disposed_of(job):
    with pytest.raises(CheckpointError, match="is a checkpoint, not a savepoint; remove its folder yourself"):
        dispose_savepoint(f"{job.folder.path}/chk-3")
    with pytest.raises(CheckpointError, match="is no savepoint"):
        dispose_savepoint(job.folder.path)
    assert_goes_on(find_checkpoint(job.folder.path))


def test_nothing_there_cannot_be_disposed_of(tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(CheckpointError, match="is no savepoint"):
        dispose_savepoint(str(tmp_path))
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize("content", [b"PAR1\x15\x04", b"", b"[]\n", b'{"format": 1, "checksum": 0}\n', b"\xff\n{}"])
def test_other_folders_with_such_a_file_are_not_touched(tmp_path, content):
    """A dataset of Parquet files has a file of that name, too."""
    (tmp_path / "_metadata").write_bytes(content)
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptStateError, match=r"is not the metadata of a checkpoint|is damaged"):
        dispose_savepoint(str(tmp_path))
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("format_type", FORMATS)
def test_what_a_user_has_put_into_the_folder_of_a_savepoint_stays(job, tmp_path, format_type):
    folder = Path(urlsplit(write_savepoint(job.checkpoint, place(tmp_path), format_type)).path)
    (folder / "notes.txt").write_text("mine")
    dispose_savepoint(str(folder))
    assert os.listdir(folder) == ["notes.txt"]


def test_savepoint_that_has_lost_a_file_can_be_disposed_of(job, tmp_path):
    folder = Path(urlsplit(write_savepoint(job.checkpoint, place(tmp_path), "native")).path)
    next(each for each in folder.iterdir() if each.name != "_metadata").unlink()
    dispose_savepoint(str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("name", ["../precious", "/etc/precious", "a/../../precious"])
def test_metadata_that_names_files_elsewhere_is_refused(job, tmp_path, name):
    found = find_checkpoint(write_savepoint(job.checkpoint, place(tmp_path), "native"))
    vertex = found.metadata.vertices[0]
    handles = tuple(tuple(replace(handle, name=name) for handle in each) for each in vertex.subtasks)
    found.folder.write("_metadata", replace(found.metadata, vertices=(replace(vertex, subtasks=handles),)).encode())
    with pytest.raises(CorruptStateError, match="lies outside of the checkpoint"):
        dispose_savepoint(found.folder.uri)
