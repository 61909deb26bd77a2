"""Sinks that write exactly once, in whole jobs that fail and come back; the same on both targets."""

from __future__ import annotations

import io
import uuid
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.shared.job_parts import RESTARTING, FileTransactions, numbers_in

from penstock.common import Row, Types
from penstock.common.exceptions import UserFunctionError
from penstock.common.serialization import Encoder
from penstock.datastream import RuntimeExecutionMode
from penstock.datastream.connectors import BucketAssigner, FileSink, StreamingFileSink
from penstock.datastream.connectors.sink_v2 import Committer, Sink, SinkWriter, SupportsCommitter
from penstock.datastream.formats.parquet import ParquetBulkWriters

NUMBERS = list(range(40))


class FailsAt:
    """Passes numbers on, and fails once at each of some of them, whatever process asks."""

    def __init__(self, folder: Path, *numbers: int) -> None:
        self._folder = folder
        self._numbers = numbers

    def __call__(self, number: int) -> int:
        if number in self._numbers:
            mark = self._folder / f"failed-at-{number}"
            if not mark.exists():
                mark.touch()
                raise RuntimeError(f"no {number} today")
        return number


def failing_stream(run_target, tmp_path, parallelism=2):
    env = run_target(parallelism, RESTARTING)
    fails = FailsAt(tmp_path, 7, 33, 39)
    return env, env.from_collection(NUMBERS).rebalance().map(fails).name("fails")


def text_sink(folder: Path) -> FileSink:
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def test_file_sink_writes_each_element_once(run_target, tmp_path):
    env, stream = failing_stream(run_target, tmp_path)
    stream.sink_to(text_sink(tmp_path / "out"))
    env.execute()
    assert numbers_in(tmp_path / "out") == NUMBERS


def test_bulk_files_hold_each_element_once(run_target, tmp_path):
    env, stream = failing_stream(run_target, tmp_path)
    factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["number"], [Types.INT()]))
    stream.map(lambda number: Row(number)).sink_to(FileSink.for_bulk_format(str(tmp_path / "out"), factory).build())
    env.execute()
    files = [path.read_bytes() for path in (tmp_path / "out").rglob("part-*")]
    rows = [row for content in files for row in pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()]
    assert sorted(row["number"] for row in rows) == NUMBERS and len(files) > 2


def test_two_phase_commit_sink_writes_each_element_once(run_target, tmp_path):
    (tmp_path / "out").mkdir()
    env, stream = failing_stream(run_target, tmp_path)
    stream.add_sink(FileTransactions(tmp_path / "out"))
    env.execute()
    assert numbers_in(tmp_path / "out") == NUMBERS


class Batches(SinkWriter):
    def __init__(self):
        self._held = []

    def write(self, element, context):
        self._held.append(element)

    def flush(self, end_of_input):
        pass

    def prepare_commit(self):
        prepared, self._held = self._held, []
        return [Prepared(uuid.uuid4().hex, prepared)] if prepared else []


class Prepared:
    """A committable of the user's own class."""

    def __init__(self, name, numbers):
        self.name = name
        self.numbers = numbers


class FolderCommitter(Committer):
    def __init__(self, folder):
        self._folder = folder

    def commit(self, requests):
        for request in requests:
            prepared = request.get_committable()
            (self._folder / prepared.name).write_text("".join(f"{number}\n" for number in prepared.numbers))


class FolderSink(Sink, SupportsCommitter):
    """Commits by writing a file with a name that is chosen before: doing it again changes nothing."""

    def __init__(self, folder):
        self._folder = folder

    def create_writer(self, context):
        return Batches()

    def create_committer(self, context):
        return FolderCommitter(self._folder)


def test_own_sink_commits_each_element_once(run_target, tmp_path):
    (tmp_path / "out").mkdir()
    env, stream = failing_stream(run_target, tmp_path)
    stream.sink_to(FolderSink(tmp_path / "out")).name("folder")
    env.execute()
    assert numbers_in(tmp_path / "out") == NUMBERS


def test_bounded_job_without_checkpoints_shows_its_files_at_the_end(run_target, tmp_path):
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
        folder = tmp_path / mode.name
        env = run_target(2).set_runtime_mode(mode)
        env.from_collection(NUMBERS).rebalance().sink_to(text_sink(folder))
        env.execute()
        assert numbers_in(folder) == NUMBERS


@pytest.mark.parametrize("kind", ["files", "transactions"])
def test_another_run_continues_from_the_checkpoint_of_a_failed_one(run_target, tmp_path, kind):
    out = tmp_path / "out"
    out.mkdir()
    checkpoints = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "penstock.epoch.interval": "1 ms",
        "penstock.epoch.max-records": "10",
    }

    def run(parallelism, **recovery):
        env = run_target(parallelism, {**checkpoints, "restart-strategy.type": "none", **recovery})
        stream = env.from_collection(NUMBERS).uid("numbers").rebalance().map(FailsAt(tmp_path, 33)).uid("fails")
        sink = stream.sink_to(text_sink(out)) if kind == "files" else stream.add_sink(FileTransactions(out))
        sink.uid("sink")
        env.execute()

    with pytest.raises(UserFunctionError, match="no 33 today"):
        run(2)
    assert set(numbers_in(out)) < set(NUMBERS)
    [left_by_the_first] = (tmp_path / "checkpoints").iterdir()
    run(3, **{"execution.state-recovery.path": str(left_by_the_first)})
    assert numbers_in(out) == NUMBERS


@pytest.mark.filterwarnings("ignore:StreamingFileSink is deprecated")
def test_old_file_sink_writes_too(run_target, tmp_path):
    builder = StreamingFileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    env = run_target()
    env.from_collection(NUMBERS).add_sink(builder.build())
    env.execute()
    assert numbers_in(tmp_path / "out") == NUMBERS
