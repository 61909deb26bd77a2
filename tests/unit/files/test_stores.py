"""A path or URI leads to the same store for all who use files, and stores keep the same promises."""

from __future__ import annotations

import os
import uuid

import pytest
from pyarrow.fs import LocalFileSystem

from penstock.checkpoint import folders
from penstock.checkpoint.folders import folder_at
from penstock.common import Configuration, WatermarkStrategy
from penstock.common.exceptions import CheckpointError, EnvironmentSetupError
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import FileSink, FileSource, StreamFormat
from penstock.datastream.connectors.file_system import input_files
from penstock.datastream.functions import CheckpointListener, MapFunction
from penstock.files import locations
from penstock.files.arrow_store import ArrowStore
from penstock.files.local_store import LocalStore
from penstock.files.locations import absolute_location, is_local, store_at

# --- what a store promises ------------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "private", "not-durable", "arrow", "fsspec"])
def place(request, tmp_path):
    """A store, and a folder in it that is not there yet."""
    match request.param:
        case "local":
            return LocalStore(), str(tmp_path / "new")
        case "private":
            return LocalStore(is_private=True), str(tmp_path / "new")
        case "not-durable":
            return LocalStore(is_private=True, is_durable=False), str(tmp_path / "new")
        case "arrow":
            return ArrowStore(LocalFileSystem()), str(tmp_path / "new")
        case _:
            pytest.importorskip("fsspec")
            return store_at(f"memory://{uuid.uuid4().hex}/new")


def put(store, path, content):
    with store.create(path) as out:
        out.write(content)
        store.sync(out, path)


def test_new_file_has_the_folders_above_it(place):
    store, folder = place
    put(store, f"{folder}/deep/a", b"one\ntwo\n")
    assert (store.size_of(f"{folder}/deep/a"), store.names(folder)) == (8, ["deep"])
    with store.open(f"{folder}/deep/a") as stream:
        assert stream.readline() == b"one\n"
        stream.seek(1)
        assert stream.read(3) == b"ne\n"


def test_whole_file_is_there_only_when_it_is_complete(place):
    store, folder = place
    store.make_folder(folder)
    put(store, f"{folder}/a", b"old")
    with store.create_whole(f"{folder}/a") as out:
        out.write(b"new")
        assert store.size_of(f"{folder}/a") == 3
        with store.open(f"{folder}/a") as old:
            assert old.read() == b"old"
    with pytest.raises(RuntimeError), store.create_whole(f"{folder}/a") as out:
        out.write(b"broken")
        raise RuntimeError
    with store.open(f"{folder}/a") as stream:
        assert stream.read() == b"new"
    assert store.names(folder) == ["a"]


def test_files_are_found_without_hidden_ones(place):
    store, folder = place
    for name in ("a", "sub/b", "_c", ".d/e"):
        put(store, f"{folder}/{name}", b"x")
    found = dict(store.find(folder, (".", "_")))
    assert {path.removeprefix(f"{folder}/"): size for path, size in found.items()} == {"a": 1, "sub/b": 1}
    assert len(list(store.find(folder))) == 4
    assert [size for _, size in store.find(f"{folder}/a")] == [1]
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        list(store.find(f"{folder}/nothing"))


def test_what_is_not_there_is_told_apart(place):
    store, folder = place
    assert (store.size_of(f"{folder}/a"), store.names(folder)) == (None, [])
    for ask in (store.open, store.delete):
        with pytest.raises(FileNotFoundError):
            ask(f"{folder}/a")
    store.delete_folder(folder)


def test_files_get_other_names_and_go(place):
    store, folder = place
    put(store, f"{folder}/.a", b"new")
    put(store, f"{folder}/a", b"old")
    store.rename(f"{folder}/.a", f"{folder}/a")
    store.sync_folder(folder)
    with store.open(f"{folder}/a") as stream:
        assert stream.read() == b"new"
    store.delete(f"{folder}/a")
    assert store.names(folder) == []
    store.delete_folder(folder)
    assert store.names(folder) == []


# --- what leads to it -----------------------------------------------------------------------------------------------


def test_paths_and_uris_of_this_machine_are_local(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    there = str(tmp_path / "x")
    for location in (there, f"{there}/", f"file://{there}", f"file:{there}", f"FILE://{there}", "x", "~/x", "file:~/x"):
        assert is_local(location)
        assert (store_at(location), absolute_location(location)) == ((LocalStore(), there), there)
    assert store_at("file:///a%20b")[1] == "/a b"


@pytest.mark.skipif(os.name == "nt", reason="they are paths of this machine")
@pytest.mark.parametrize("path", ["C:\\chk", "C:/chk", "file:///C:/chk", "file:\\\\C:\\chk"])
def test_paths_of_windows_do_not_become_folders_elsewhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {
        "execution.target": "inline",
        "execution.checkpointing.dir": path,
        "execution.checkpointing.interval": "1 s",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    env.from_collection([1]).print()
    with pytest.raises(ValueError, match="is a path of Windows"):
        env.execute()
    with pytest.raises(ValueError, match="is a path of Windows"):
        store_at(path)
    assert list(tmp_path.iterdir()) == []
    assert store_at("./C:/chk")[1] == str(tmp_path / "C:" / "chk")


def test_other_uris_stay_as_they_are():
    assert not is_local("s3://bucket/x")
    assert absolute_location("s3://bucket/x") == "s3://bucket/x"


def test_hadoop_without_its_client_is_reported_without_all_places_of_the_search(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", str(tmp_path))
    reported = r"^hdfs://host:1/a: [^\n]*HADOOP_HOME and CLASSPATH[^\n]*webhdfs://[^\n]*$"
    with pytest.raises(EnvironmentSetupError, match=reported) as raised:
        store_at("hdfs://host:1/a")
    assert raised.value.__context__ is None


def test_unknown_scheme_is_reported():
    message = r"nowhere://x/y: no file system is known for it .*use a local path, file://, or a URI that Arrow"
    with pytest.raises(ValueError, match=message):
        store_at("nowhere://x/y")
    with pytest.raises(CheckpointError, match=message):
        folder_at("nowhere://x/y")


# --- all who use it -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "home", "arrow", "fsspec"])
def root(request, tmp_path, monkeypatch):
    """A place as a user names it."""
    match request.param:
        case "local":
            return str(tmp_path)
        case "home":
            monkeypatch.setenv("HOME", str(tmp_path))
            return "~/some where"
        case "arrow":
            for module in (locations, folders, input_files):
                monkeypatch.setattr(module, "is_local", lambda location: False)
            return tmp_path.as_uri()
        case _:
            pytest.importorskip("fsspec")
            return f"memory://{uuid.uuid4().hex}/data"


class SeesCheckpoints(MapFunction, CheckpointListener):
    seen: list[list[str]] = []

    def __init__(self, checkpoints):
        self.checkpoints = checkpoints

    def map(self, value):
        return value.upper()

    def notify_checkpoint_complete(self, checkpoint_id):
        self.seen.append(folder_at(self.checkpoints).names())


def test_a_job_reads_writes_and_keeps_checkpoints_anywhere(root, monkeypatch):
    monkeypatch.setattr(SeesCheckpoints, "seen", [])
    store, path = store_at(root)
    put(store, f"{path}/in/a.txt", b"one\ntwo\n")
    settings = {
        "execution.target": "inline",
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": f"{root}/checkpoints",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{root}/in").build()
    sink = FileSink.for_row_format(f"{root}/out", Encoder.simple_string_encoder()).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    lines.map(SeesCheckpoints(f"{root}/checkpoints")).sink_to(sink)
    env.execute("files")
    written = []
    for found, _ in store.find(f"{path}/out", (".",)):
        with store.open(found) as stream:
            written += stream.read().split()
    assert written == [b"ONE", b"TWO"]
    assert SeesCheckpoints.seen and all(SeesCheckpoints.seen)
