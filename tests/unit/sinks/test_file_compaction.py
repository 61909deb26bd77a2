"""Small files of a FileSink put together: when, how, and what a change of mind does."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem
from sink_job import SinkJob, hidden_files, visible_files

from penstock.common.exceptions import JobExecutionError
from penstock.common.serialization import Encoder
from penstock.common.typeinfo import Types
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.file_system import FileCompactor, FileCompactStrategy
from penstock.datastream.connectors.file_system.compaction import Compaction, PartsToCompact
from penstock.datastream.connectors.file_system.part_files import PartFile
from penstock.datastream.formats.parquet import ParquetBulkWriters
from penstock.files.arrow_store import ArrowStore

EVERY_THIRD = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
SIX_BYTES = FileCompactStrategy.builder().set_size_threshold(6).build()
ONE_BEHIND_THE_OTHER = FileCompactor.concat_file_compactor()


def sink(folder, strategy=None, compactor=ONE_BEHIND_THE_OTHER):
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return (builder.disable_compact() if strategy is None else builder.enable_compact(strategy, compactor)).build()


def contents(folder):
    return sorted(visible_files(folder).values())


def test_files_of_some_checkpoints_become_one(tmp_path):
    job = SinkJob(sink(tmp_path, EVERY_THIRD), tmp_path)
    job.write(2).checkpoint().write(1).checkpoint()
    assert contents(tmp_path) == [] and len(hidden_files(tmp_path)) == 2
    job.write(1).checkpoint()
    assert contents(tmp_path) == [b"0\n1\n2\n3\n"]
    assert [name.startswith("compacted-part-") for name in visible_files(tmp_path)] == [True]
    assert hidden_files(tmp_path) == [], "the small ones are gone"
    job.write(1).end()
    assert contents(tmp_path) == [b"0\n1\n2\n3\n", b"4\n"]


def test_checkpoints_without_elements_count_too(tmp_path):
    SinkJob(sink(tmp_path, EVERY_THIRD), tmp_path).write(1).checkpoint().checkpoint().checkpoint()
    assert contents(tmp_path) == [b"0\n"]


def test_files_become_one_when_they_are_large_enough(tmp_path):
    job = SinkJob(sink(tmp_path, SIX_BYTES, FileCompactor.concat_file_compactor(b"--\n")), tmp_path)
    job.write(1).checkpoint().write(1).checkpoint()
    assert contents(tmp_path) == []
    job.write(1).checkpoint()
    assert contents(tmp_path) == [b"0\n--\n1\n--\n2\n"]


def test_files_may_stay_as_they_are(tmp_path):
    job = SinkJob(sink(tmp_path, EVERY_THIRD, FileCompactor.identical_file_compactor()), tmp_path)
    job.write(1).checkpoint().write(1).checkpoint()
    assert contents(tmp_path) == []
    job.checkpoint()
    assert contents(tmp_path) == [b"0\n", b"1\n"]


def test_files_that_wait_are_shown_when_nothing_is_put_together_any_more(tmp_path):
    job = SinkJob(sink(tmp_path, EVERY_THIRD), tmp_path).write(1).checkpoint().write(1).checkpoint()
    other = SinkJob(sink(tmp_path), tmp_path)
    job._node, job._graph = other._node, other._graph
    job.fail().checkpoint()
    assert contents(tmp_path) == [b"0\n", b"1\n"]


def test_file_that_is_gone_is_named(tmp_path):
    job = SinkJob(sink(tmp_path, EVERY_THIRD), tmp_path).write(1).checkpoint().write(1).checkpoint()
    for name in hidden_files(tmp_path):
        (tmp_path / name).unlink()
    with pytest.raises(JobExecutionError, match=r"\.part-.* must be compacted with others, but it is gone"):
        job.checkpoint()


def test_stores_that_pyarrow_reaches(tmp_path):
    files = ArrowStore(LocalFileSystem())
    parts = []
    for number in range(2):
        with files.create(f"{tmp_path}/.small-{number}") as out:
            out.write(b"%d\n" % number)
        parts.append(PartFile(f"{tmp_path}/small-{number}", f"{tmp_path}/.small-{number}", 2))
    waiting = PartsToCompact(Compaction(SIX_BYTES, ONE_BEHIND_THE_OTHER), files)
    assert waiting.prepare_commit(parts[:1], is_last=False) == []
    together, *small = waiting.prepare_commit(parts[1:], is_last=True)
    assert Path(together.hidden_path).read_bytes() == b"0\n1\n" and together.length == 4
    assert [each.hidden_path for each in small] == [part.hidden_path for part in parts]


def test_disk_that_is_full_leaves_no_half_file(tmp_path, monkeypatch):
    job = SinkJob(sink(tmp_path, EVERY_THIRD), tmp_path).write(1).checkpoint().write(1).checkpoint()
    small = hidden_files(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr("shutil.copyfileobj", full)
        job.checkpoint()
    assert hidden_files(tmp_path) == small
    job.fail().checkpoint()
    assert contents(tmp_path) == [b"0\n1\n"]


@pytest.mark.parametrize("strategy", [None, EVERY_THIRD, SIX_BYTES])
def test_what_was_prepared_for_a_checkpoint_that_was_not_taken_goes_with_the_attempt(tmp_path, strategy):
    job = SinkJob(sink(tmp_path, strategy), tmp_path).write(1).checkpoint().write(1).checkpoint()
    known = hidden_files(tmp_path)
    job.write(1)
    for operator in job.operators:
        operator.prepare_commit(3)
    job.fail()
    assert hidden_files(tmp_path) == known
    job.write(1).end()
    assert b"".join(contents(tmp_path)) == b"0\n1\n2\n"
    assert hidden_files(tmp_path) == []


def test_misuse_is_refused_when_the_sink_is_built(tmp_path):
    rows = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    with pytest.raises(TypeError, match="needs a FileCompactStrategy and a FileCompactor"):
        rows.enable_compact(EVERY_THIRD, None)
    bulk = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(Types.ROW([Types.INT()])))
    with pytest.raises(ValueError, match="a concat_file_compactor would spoil them"):
        bulk.enable_compact(EVERY_THIRD, ONE_BEHIND_THE_OTHER)
    assert bulk.enable_compact(EVERY_THIRD, FileCompactor.identical_file_compactor()) is bulk
