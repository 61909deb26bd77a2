"""FileSource on trees of files: it finds what a plain reader finds, however the tree is built and changed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_job import SourceJob

from penstock.common import Types
from penstock.common.exceptions import JobExecutionError
from penstock.common.time import Duration
from penstock.datastream.connectors.file_system import FileSource, StreamFormat, input_files
from penstock.datastream.connectors.file_system.input_files import (
    find_files,
    is_below,
    uri_of,
)
from penstock.datastream.connectors.support.split_dealing import DealtSplits
from penstock.datastream.formats.csv import CsvReaderFormat, CsvRowDeserializationSchema, CsvSchema
from penstock.files.arrow_store import ArrowStore
from penstock.files.local_store import LocalStore

TEXT = StreamFormat.text_line_format()


def lines_of(*paths):
    return SourceJob(FileSource.for_record_stream_format(TEXT, *map(str, paths)).build()).to_the_end().values


def continuous(folder):
    builder = FileSource.for_record_stream_format(TEXT, str(folder))
    return SourceJob(builder.monitor_continuously(Duration.of_millis(1)).build())


def read_until(job, expected):
    while len(job.shown) < expected:
        job.wait_for_work()
        job.epoch()


# --- links -----------------------------------------------------------------------------------------------------------


def test_linked_folders_are_read(tmp_path):
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "b.txt").write_text("b\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    assert lines_of(folder) == ["a", "b"]


def test_links_that_lead_back_are_not_followed_for_ever(tmp_path):
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "a.txt").write_text("a\n")
    (tmp_path / "one" / "two" / "up").symlink_to(tmp_path / "one")
    (tmp_path / "one" / "self").symlink_to("self")
    assert lines_of(tmp_path) == ["a"]
    assert lines_of(tmp_path / "one" / "two" / "up") == ["a"]


def test_links_to_nothing_are_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert lines_of(tmp_path) == ["a"]


def test_pipes_are_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    os.mkfifo(tmp_path / "pipe")
    assert lines_of(tmp_path) == ["a"]


# --- what changes while it is looked at ------------------------------------------------------------------------------


def test_a_file_that_goes_while_its_folder_is_looked_through_is_left_out(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    plain = os.listdir

    def list_then_remove(folder):
        names = plain(folder)
        (tmp_path / "b.txt").unlink(missing_ok=True)
        return names

    monkeypatch.setattr(os, "listdir", list_then_remove)
    assert [Path(path).name for path, _ in sorted(LocalStore().find(str(tmp_path)))] == ["a.txt", "c.txt"]


def test_a_folder_that_goes_while_it_is_looked_through_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("a\n")
    plain = os.stat

    def stat_then_remove(path, **options):
        about = plain(path, **options)
        if path == str(tmp_path / "sub"):
            os.rmdir(path)
        return about

    monkeypatch.setattr(os, "stat", stat_then_remove)
    assert [path for path, _ in LocalStore().find(str(tmp_path))] == [str(tmp_path / "a.txt")]


def test_a_failed_look_does_not_end_a_source_that_looks_again(tmp_path, monkeypatch, caplog):
    (tmp_path / "1.txt").write_text("one\n")
    job = continuous(tmp_path)
    read_until(job, 1)
    shutil.move(tmp_path, f"{tmp_path}.away")
    while "will be repeated" not in caplog.text:
        job.coordinator.check()
    shutil.move(f"{tmp_path}.away", tmp_path)
    (tmp_path / "2.txt").write_text("two\n")
    read_until(job, 2)
    job.close()
    assert job.values == ["one", "two"]


def test_the_first_look_must_succeed(tmp_path):
    job = continuous(tmp_path / "nowhere")
    with pytest.raises(JobExecutionError, match="there is no file or folder"):
        read_until(job, 1)


# --- several file systems --------------------------------------------------------------------------------------------


def test_equal_paths_on_two_file_systems_are_two_files(monkeypatch):
    stores = {"hdfs://nn1/data": pa.fs._MockFileSystem(), "hdfs://nn2/data": pa.fs._MockFileSystem()}
    for name, store in stores.items():
        store.create_dir("data")
        with store.open_output_stream("data/a.txt") as file:
            file.write(f"from {name}\n".encode())
    monkeypatch.setattr(input_files, "store_at", lambda path: (ArrowStore(stores[path]), "data"))
    found = find_files(tuple(stores))
    assert [file.uri for file in found] == ["hdfs://nn1/data/a.txt", "hdfs://nn2/data/a.txt"]
    source = FileSource.for_record_stream_format(TEXT, *stores).build()
    assert [split.name for split in source._find()] == ["hdfs://nn1/data/a.txt:0", "hdfs://nn2/data/a.txt:0"]
    assert sorted(SourceJob(source).to_the_end().values) == ["from hdfs://nn1/data", "from hdfs://nn2/data"]


@pytest.mark.parametrize(
    ("root", "path", "uri"),
    [
        ("", "/data/a", "/data/a"),
        ("hdfs://nn1:8020/data", "/data/a", "hdfs://nn1:8020/data/a"),
        ("hdfs://user@nn1/data", "/data/a", "hdfs://nn1/data/a"),
        ("s3://bucket/data", "bucket/data/a", "s3://bucket/data/a"),
        ("s3://key:secret@bucket/data?region=eu", "bucket/data/a", "s3://bucket/data/a"),
        (
            "s3://bucket/data?endpoint_override=host:9000",
            "bucket/data/a",
            "s3://bucket/data/a?endpoint_override=host:9000",
        ),
        ("abfs://container@account.net/data", "container/data/a", "abfs://container@account.net/data/a"),
    ],
)
def test_uris_name_the_file_system_but_no_secrets(root, path, uri):
    assert uri_of(root, path) == uri
    assert is_below(root or "/data", path)
    assert not is_below(root or "/data", path.replace("data", "other"))


def test_files_known_to_an_older_checkpoint_by_their_path_are_not_read_again():
    paths = ("hdfs://nn1/data", "hdfs://nn2/data", "s3://bucket/x", "/local")
    source = FileSource.for_record_stream_format(TEXT, *paths).build()
    known = {
        "/data/a": "hdfs://nn2/data/a",
        "bucket/x/b": "s3://bucket/x/b",
        "/local/c": "/local/c",
        "/else/d": "/else/d",
    }
    assert {old: source._as_uri(old) for old in known} == known
    assert source._as_uri("hdfs://nn1/data/a") == "hdfs://nn1/data/a"
    enumerator = source.restore_enumerator(None, DealtSplits(known=frozenset(known)))
    assert enumerator.snapshot_state(1).known == frozenset(known.values())


# --- packed files ----------------------------------------------------------------------------------------------------


def zstd(data):
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, "zstd") as packed:
        packed.write(data)
    return buffer.getvalue().to_pybytes()


PACKED = {
    "": bytes,
    ".gz": gzip.compress,
    ".gzip": gzip.compress,
    ".deflate": zlib.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


@pytest.mark.parametrize("suffix", list(PACKED))
def test_packed_files_are_unpacked_however_many_streams_they_have(tmp_path, suffix):
    lines = [f"line {number}" for number in range(60_000)]
    halves = ["".join(f"{line}\n" for line in half).encode() for half in (lines[:20_000], lines[20_000:])]
    (tmp_path / f"a.txt{suffix}").write_bytes(b"".join(map(PACKED[suffix], halves)))
    assert lines_of(tmp_path) == lines


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKED if suffix])
def test_packed_files_that_are_cut_off_are_reported(tmp_path, suffix):
    (tmp_path / f"a.txt{suffix}").write_bytes(PACKED[suffix](os.urandom(300_000))[:-1000])
    with pytest.raises((EOFError, OSError)):
        lines_of(tmp_path)


# --- byte order marks ------------------------------------------------------------------------------------------------

IDS = CsvSchema.builder().add_number_column("id").add_string_column("name")


def csv_rows(folder, schema):
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(folder)).build()
    return [tuple(row) for row in SourceJob(source).to_the_end().values]


@pytest.mark.parametrize("content", ['id,name\n1,"a"\n', '"id",name\n1,a\n'])
def test_a_byte_order_mark_is_no_part_of_a_csv_header(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(codecs.BOM_UTF8 + content.encode())
    schema = CsvSchema.builder().add_columns_from(IDS.build()).set_use_header().build()
    assert csv_rows(tmp_path, schema) == [(1, "a")]


def test_a_byte_order_mark_is_no_part_of_a_first_row_or_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(codecs.BOM_UTF8 + b"1,a\n2,\xef\xbb\xbfb\n")
    assert csv_rows(tmp_path, IDS.build()) == [(1, "a"), (2, "\ufeffb")]
    assert lines_of(tmp_path) == ["1,a", "2,\ufeffb"]
    row_type = Types.ROW([Types.INT(), Types.STRING()])
    by_line = StreamFormat.line_format(CsvRowDeserializationSchema.Builder(row_type).build())
    source = FileSource.for_record_stream_format(by_line, str(tmp_path)).build()
    assert [tuple(row) for row in SourceJob(source).to_the_end().values] == [(1, "a"), (2, "\ufeffb")]


# --- any tree --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c.txt", "ü", ".hidden", "_part", "x y", "100%", "a:0", "#?"])
CHARSETS = st.sampled_from(["utf-8", "utf-16", "utf-16-le", "latin-1", "cp1252"])
CONTENTS = st.text(st.sampled_from("ab é\n\r\t\"',;#"), max_size=40)
FILES = st.fixed_dictionaries(
    {
        "folder": st.lists(NAMES, max_size=3),
        "name": NAMES,
        "suffix": st.sampled_from(list(PACKED)),
        "content": CONTENTS,
        "has_mark": st.booleans(),
    }
)
LINKS = st.tuples(st.integers(0, 30), st.integers(0, 30), NAMES, st.booleans())


def build(top, charset, files, links, removed):
    """A tree below `top`; folders and files are made where there is nothing, links between whatever there is."""
    for file in files:
        folder = top.joinpath(*file["folder"])
        path = folder / (file["name"] + file["suffix"])
        if any(part.is_file() for part in [folder, *folder.parents]) or path.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        mark = codecs.BOM_UTF8 if charset == "utf-8" and file["has_mark"] else b""
        path.write_bytes(PACKED[file["suffix"]](mark + file["content"].encode(charset)))
    for folder_at, target_at, name, is_relative in links:
        everything = [top, *sorted(path for path in top.rglob("*"))]
        folders = [path for path in everything if path.is_dir() and not path.is_symlink()]
        folder, target = folders[folder_at % len(folders)], everything[target_at % len(everything)]
        # Names say how files are packed, also those of links.
        link = folder / f"{name}.link{target.suffix if target.suffix in PACKED else ''}"
        if not os.path.lexists(link):
            link.symlink_to(os.path.relpath(target, folder) if is_relative else target)
    everything = sorted(path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    for at in removed:
        if everything:
            everything.pop(at % len(everything)).unlink()


def plain_lines(folder, charset, above=()):
    """What a plain reader finds: Python's own way through folders, and its own text files."""
    unpack = {".gz": gzip.open, ".gzip": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        try:
            real = path.resolve(strict=True)
        except (FileNotFoundError, RuntimeError, OSError):
            continue
        if real.is_dir():
            if real not in above:
                yield from plain_lines(path, charset, (*above, real))
            continue
        suffix = path.suffix if path.suffix in PACKED else ""
        if suffix in unpack:
            with unpack[suffix](path) as stream:
                data = stream.read()
        elif suffix == ".deflate":
            data = zlib.decompress(path.read_bytes())
        elif suffix == ".zst":
            data = pa.CompressedInputStream(pa.py_buffer(path.read_bytes()), "zstd").read()
        else:
            data = path.read_bytes()
        text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig" if charset == "utf-8" else charset)
        yield from (line.removesuffix("\n") for line in text)


@settings(max_examples=60)
@given(
    charset=CHARSETS,
    files=st.lists(FILES, max_size=8),
    links=st.lists(LINKS, max_size=5),
    removed=st.lists(st.integers(0, 30), max_size=2),
    parallelism=st.integers(1, 2),
)
def test_any_tree_is_read_as_a_plain_reader_reads_it(charset, files, links, removed, parallelism):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "top"
        top.mkdir()
        build(top, charset, files, links, removed)
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), str(top)).build()
        read = SourceJob(source, parallelism).to_the_end().values
        assert sorted(read) == sorted(plain_lines(top, charset, (top.resolve(),)))


# --- a tree that changes ---------------------------------------------------------------------------------------------


class Looks:
    """A continuous source's enumerator that looks when it is told to, and what it has found."""

    def __init__(self, folder):
        builder = FileSource.for_record_stream_format(TEXT, str(folder))
        self._source = builder.monitor_continuously(Duration.of_seconds(1)).build()
        self.found = []
        self._begin(self._source.create_enumerator(self))

    def _begin(self, enumerator):
        self._enumerator = enumerator
        enumerator.start()
        enumerator.add_reader(0)

    def look(self):
        try:
            splits = self._callable()
        except Exception as failure:
            self._handler(None, failure)
        else:
            self._handler(splits, None)
        for _ in range(100):  # A reader that is always ready for more.
            self._enumerator.handle_split_request(0, None)

    def restart(self):
        self._begin(self._source.restore_enumerator(self, self._enumerator.snapshot_state(1)))

    def call_async(self, callable, handler, initial_delay_ms=0, period_ms=None):
        self._callable, self._handler = callable, handler

    def current_parallelism(self):
        return 1

    def registered_readers(self):
        return [0]

    def assign_split(self, split, subtask):
        self.found.append(split.content.path)


PLACES = st.sampled_from(["a", "b", "sub/a", "sub/b", "sub/deep/c", "other/a", ".hidden/a", "sub/_x"])
CHANGES = st.one_of(
    st.tuples(st.just("write"), PLACES, PLACES),
    st.tuples(st.just("remove"), PLACES, PLACES),
    st.tuples(st.just("rename"), PLACES, PLACES),
    st.tuples(st.just("link"), PLACES, PLACES),
    st.tuples(st.just("link to nothing"), PLACES, PLACES),
)


def change(top, what, place, other):
    """Whatever cannot be done in the tree as it is, is not done."""
    path, target = top / place, top / other
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        match what:
            case "write":
                path.write_text("line\n")
            case "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "rename":
                path.rename(target)
            case "link":
                path.symlink_to(target.parent)
            case "link to nothing":
                path.symlink_to("nowhere")
    except OSError:
        pass


def plain_files(folder, above=()):
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.startswith((".", "_")) or not path.exists():
            continue
        if path.is_dir():
            if path.resolve() not in above:
                yield from plain_files(path, (*above, path.resolve()))
        else:
            yield str(path)


STEPS = st.one_of(
    CHANGES,
    CHANGES,
    st.just(("look",)),
    st.tuples(st.just("look during"), st.integers(0, 12), CHANGES),
    st.just(("move away and look",)),
    st.just(("restart",)),
)


@settings(max_examples=150)
@given(steps=st.lists(STEPS, max_size=25))
def test_a_changing_tree_is_found_file_by_file_whatever_happens_meanwhile(steps):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve() / "top"
        top.mkdir()
        looks, ever_there = Looks(top), set()
        looks.look()  # The first look must succeed.
        for step in [*steps, ("look",)]:
            match step:
                case ("look",):
                    there = set(plain_files(top, (top,)))
                    looks.look()
                    assert there <= set(looks.found)
                case ("look during", calls, meanwhile):
                    ever_there.update(plain_files(top, (top,)))
                    with pytest.MonkeyPatch.context() as patch:
                        change_meanwhile(patch, calls, lambda: change(top, *meanwhile))
                        looks.look()
                case ("move away and look",):
                    shutil.move(top, f"{top}.away")
                    looks.look()
                    shutil.move(f"{top}.away", top)
                case ("restart",):
                    looks.restart()
                case _:
                    change(top, *step)
            ever_there.update(plain_files(top, (top,)))
        assert len(looks.found) == len(set(looks.found)), "each file once"
        assert set(looks.found) <= ever_there


def change_meanwhile(patch, calls, action):
    """Carry out `action` just before the given call that asks about files."""
    left = [calls]

    def counting(plain):
        def ask(*arguments, **options):
            left[0] -= 1
            if left[0] == -1:
                action()
            return plain(*arguments, **options)

        return ask

    for name in ("stat", "listdir"):
        patch.setattr(os, name, counting(getattr(os, name)))
