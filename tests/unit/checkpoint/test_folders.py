"""Folders for checkpoints keep the same promises wherever they are."""

from __future__ import annotations

import os
import pickle
import stat
import uuid
from collections.abc import Iterator

import pytest
from object_store import ObjectStore, object_store

from penstock.checkpoint.folders import ArrowFolder, Folder, LocalFolder, folder_at
from penstock.common.exceptions import CheckpointError
from penstock.testing import MemoryFolder


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with object_store() as server:
        yield server


@pytest.fixture(params=["local", "not-durable", "arrow", "fsspec", "memory", "s3"])
def folder(request, tmp_path, objects):
    made: Folder
    match request.param:
        case "local":
            made = LocalFolder(str(tmp_path / "there"))
        case "not-durable":
            made = LocalFolder(str(tmp_path / "there"), is_durable=False)
        case "arrow":
            made = ArrowFolder((tmp_path / "there").as_uri())
        case "fsspec":
            pytest.importorskip("fsspec")
            made = folder_at(f"memory://{uuid.uuid4().hex}/there")
        case "memory":
            made = MemoryFolder()
        case "s3":
            made = folder_at(objects.uri(f"{uuid.uuid4().hex}/there"))
    made.make()
    return made


def test_what_was_written_is_read(folder):
    folder.write("some", b"thing")
    assert (folder.read("some"), folder.size("some"), folder.names()) == (b"thing", 5, ["some"])
    with folder.open("some") as content:
        content.seek(2)
        assert content.read() == b"ing"


def test_file_is_there_only_when_it_is_complete(folder):
    with folder.create("half") as out:
        out.write(b"1")
        assert "half" not in folder.names()
        out.write(b"2")
    assert folder.read("half") == b"12"


def test_file_that_could_not_be_written_leaves_nothing(folder):
    with pytest.raises(RuntimeError, match="no more"), folder.create("half") as out:
        out.write(b"1")
        raise RuntimeError("no more")
    assert folder.names() == []


def test_writing_again_replaces_the_file(folder):
    folder.write("some", b"old and long")
    folder.write("some", b"new")
    assert folder.read("some") == b"new"


def test_folders_are_within_folders(folder):
    inner = folder.within("chk-1")
    inner.make()
    inner.write("_metadata", b"x")
    assert folder.read("chk-1/_metadata") == b"x"
    assert folder.names() == ["chk-1"]
    assert inner.path_of("_metadata") == folder.path_of("chk-1/_metadata")


def test_missing_file_is_reported_as_such(folder):
    for ask in (folder.open, folder.read, folder.size):
        with pytest.raises(FileNotFoundError):
            ask("nothing")


def test_missing_folder_has_no_names(folder):
    assert folder.within("nowhere").names() == []


def test_removing_what_is_not_there_is_fine(folder):
    folder.delete("nothing")
    folder.within("nowhere").delete_all()
    assert folder.names() == []


def test_removed_file_is_gone(folder):
    folder.write("some", b"thing")
    folder.delete("some")
    assert folder.names() == []


def test_folder_is_removed_with_all_in_it(folder):
    for name in ("a", "b"):
        inner = folder.within(f"deep/{name}")
        inner.make()
        inner.write("file", b"")
    folder.within("deep").delete_all()
    assert folder.names() == []


def test_settings_of_an_object_store_stay_at_the_end_of_its_uris(objects):
    inner = folder_at(objects.uri("job")).within("chk-1")
    inner.write("_metadata", b"x")
    assert objects.names("job") == ["job/chk-1/_metadata"]
    assert (inner.uri, inner.path_of("_metadata")) == (objects.uri("job/chk-1"), objects.uri("job/chk-1/_metadata"))
    assert folder_at(inner.uri).names() == ["_metadata"]


def test_nothing_is_moved_in_an_object_store_and_no_folder_is_made(objects):
    folder = folder_at(objects.uri("still"))
    folder.make()
    objects.asked.clear()
    for number in range(3):
        folder.within(f"chk-{number}").make()
        folder.write(f"chk-{number}/_metadata", b"x")
    assert not [each for each in objects.asked if each.startswith(("copy", "DELETE", "HEAD"))], objects.asked
    assert {each.split()[1] for each in objects.asked} == {f"still/chk-{number}/_metadata" for number in range(3)}


def test_bucket_that_is_not_there_is_reported_at_once(objects):
    with pytest.raises(OSError, match="there is no bucket other on s3"):
        folder_at(objects.uri("x").replace("@bucket/", "@other/")).make()


@pytest.mark.parametrize("kind", [LocalFolder, ArrowFolder])
def test_folder_travels_to_other_processes(tmp_path, kind):
    place = str(tmp_path) if kind is LocalFolder else tmp_path.as_uri()
    kind(place).write("some", b"thing")
    assert pickle.loads(pickle.dumps(kind(place))).read("some") == b"thing"


@pytest.mark.parametrize("name", ["plain", "with space", "ümlaut", "per%20cent"])
def test_uri_of_a_local_folder_leads_back_to_it(tmp_path, name):
    folder = LocalFolder(str(tmp_path / name))
    assert folder_at(folder.uri) == folder


def test_folders_within_are_as_durable(tmp_path):
    for is_durable in (True, False):
        assert LocalFolder(str(tmp_path), is_durable).within("x").is_durable is is_durable


def test_paths_are_local_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_at("some/where") == LocalFolder(str(tmp_path / "some" / "where"))
    assert folder_at(f"file://{tmp_path}/x") == LocalFolder(str(tmp_path / "x"))


def test_unknown_scheme_is_explained():
    with pytest.raises(CheckpointError, match=r"nosuch://here: no file system is known for it .* such as s3://bucket"):
        folder_at("nosuch://here")


def test_what_is_made_is_for_its_user_alone_and_what_was_there_keeps_its_rights(tmp_path):
    """Checkpoints hold pickles: who can write one runs code where it is read."""
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o775)
    before = os.umask(0)
    try:
        folder = LocalFolder(str(tmp_path / "shared" / "job" / "chk-1"))
        folder.make()
        folder.write("_metadata", b"x")
        folder.make()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "shared").rglob("*")}
    assert modes == {"job": 0o700, "chk-1": 0o700, "_metadata": 0o600}
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o775


def test_folder_where_a_file_is_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/below"):
        with pytest.raises(OSError, match="file"):
            LocalFolder(str(tmp_path / path)).make()
