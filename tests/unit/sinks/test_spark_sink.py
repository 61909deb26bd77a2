"""Rows written with Spark's own writers, whatever fails in between."""

from __future__ import annotations

import contextlib
import logging
import uuid
from pathlib import Path

import pytest
from sink_job import SinkJob

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.spark import sink as sink_module
from penstock.datastream.connectors.spark.sink import SparkTarget
from penstock.datastream.data_frames import spark_sink
from penstock.files.locations import store_at

ROWS = Types.ROW_NAMED(["id", "rest"], [Types.LONG(), Types.STRING()])


def stream(session=None):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    if session is not None:
        env.use_spark_session(session)
    return env.from_collection([], ROWS)


def row(number):
    return Row(number, f"r{number % 3}")


def job_of(spark, folder, format, options=None, **settings):
    target = SparkTarget(format, options or {}, **settings)
    sink = spark_sink(stream(spark), target, None, str(folder / "staging"))
    return SinkJob(sink, folder, element_of=row, parallelism=2)


def ids(spark, folder, format="parquet"):
    return sorted(
        each.id for each in spark.read.schema("id long, rest string").format(format).load(str(folder)).collect()
    )


def left_behind(folder):
    """What is still there of staged rows and unfinished batches."""
    hidden = [path.name for path in Path(folder).rglob("*") if path.is_dir() and path.name.startswith("_")]
    staged = [path.name for path in Path(folder).glob("staging/*/*") if not path.name.startswith("_done")]
    return hidden + staged


class Interrupted(Exception):
    pass


def interrupt_after(monkeypatch, owner, name, calls):
    """Let a function of the sink's raise once, when it was called so many times."""
    original, count = getattr(owner, name), [0]

    def interrupted(*arguments):
        result = original(*arguments)
        count[0] += 1
        if count[0] == calls:
            raise Interrupted
        return result

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.spark
def test_files_hold_every_row_once_although_the_job_fails(spark, tmp_path):
    job = job_of(spark, tmp_path, "json", {"path": str(tmp_path / "out")}, partition_by=("rest",))
    job.write(4).checkpoint().write(3).fail().write(2).checkpoint("metadata").crash().write(3).checkpoint("commit")
    job.crash(3).write(1).end()
    assert ids(spark, tmp_path / "out", "json") == list(range(10))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["rest=r0", "rest=r1", "rest=r2"]
    assert left_behind(tmp_path) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "calls"),
    [("delete", 1), ("mark", 1), ("rename", 1), ("rename", 2), ("delete", 3)],
    ids=["begun", "written", "one file shown", "two files shown", "all shown"],
)
def test_a_batch_that_was_interrupted_is_completed_without_doubles(spark, tmp_path, monkeypatch, name, calls):
    from penstock.spark import file_batches

    job = job_of(spark, tmp_path, "parquet", {"path": str(tmp_path / "out")})
    interrupt_after(monkeypatch, file_batches._Files, name, calls)
    with pytest.raises(JobExecutionError, match="commit\\(\\) raised Interrupted"):
        job.write(6).checkpoint()
    job.crash().write(1).end()
    assert ids(spark, tmp_path / "out") == list(range(7))
    assert left_behind(tmp_path) == []


@pytest.mark.spark
def test_a_batch_is_whole_also_where_folders_are_renamed_file_by_file(spark, tmp_path, monkeypatch):
    """As in object stores, where a process that is killed meanwhile leaves two halves of a folder."""
    from penstock.spark import file_batches

    out, rename, killed = tmp_path / "out", file_batches._Files.rename, []

    def rename_half(files, name, new_name):
        if killed or not (out / name).is_dir():
            return rename(files, name, new_name)
        killed.append(name)
        (out / new_name).mkdir()
        first = next(path for path in sorted((out / name).iterdir()) if path.name.startswith("part"))
        first.rename(out / new_name / first.name)
        raise Interrupted

    monkeypatch.setattr(file_batches._Files, "rename", rename_half)
    job = job_of(spark, tmp_path, "parquet", {"path": str(out)})
    with contextlib.suppress(JobExecutionError):
        job.write(6).checkpoint()
    job.crash().write(1).end()
    assert ids(spark, out) == list(range(7))
    assert left_behind(tmp_path) == []


@pytest.mark.spark
def test_a_function_gets_every_batch_with_a_number_that_stays_the_same(spark, tmp_path, caplog):
    seen, failures = [], [Interrupted()]

    def write(data_frame, batch_id):
        seen.append((batch_id, sorted(each.id for each in data_frame.collect())))
        if batch_id == 2 and failures:
            raise failures.pop()

    job = job_of(spark, tmp_path, write)
    job.write(2).checkpoint().write(1)
    with caplog.at_level(logging.WARNING), pytest.raises(JobExecutionError, match="Interrupted"):
        job.checkpoint()
    assert caplog.records == []
    job.crash()
    assert "batch 2 was being written when the job failed, and is written again" in caplog.text
    job.crash().write(1).end()
    assert seen == [(1, [0, 1]), (2, [2]), (2, [2]), (3, [3])]


@pytest.mark.spark
def test_rows_of_a_checkpoint_that_failed_come_with_the_next_one(spark, tmp_path):
    seen = []
    job = job_of(spark, tmp_path, lambda data_frame, batch_id: seen.append((batch_id, data_frame.count())))
    job.write(2).aborted_checkpoint().write(3).checkpoint().checkpoint().write(1).end()
    assert seen == [(1, 2), (2, 3), (4, 1)]


@pytest.mark.spark
def test_overwriting_leaves_the_rows_of_the_last_checkpoint(spark, tmp_path):
    job = job_of(spark, tmp_path, "orc", {"path": str(tmp_path / "out")}, mode="overwrite")
    job.write(3).checkpoint().write(2).checkpoint().crash().close()
    assert ids(spark, tmp_path / "out", "orc") == [3, 4]


@pytest.mark.spark
def test_staged_rows_that_were_lost_are_reported(spark, tmp_path):
    job = job_of(spark, tmp_path, "parquet", {"path": str(tmp_path / "out")})
    job.write(1).checkpoint("metadata")
    for staged in (tmp_path / "staging").rglob(".part-*"):
        staged.unlink()
    with pytest.raises(JobExecutionError, match=r"the checkpoint holds .*staging"):
        job.crash()


def test_wrong_arguments_are_reported_at_once(tmp_path):
    path = {"path": str(tmp_path)}
    with pytest.raises(ValueError, match=r"files need a folder; give options=\{'path': \.\.\.\} for 'csv'"):
        stream().sink_to_spark("csv")
    with pytest.raises(ValueError, match="mode must be 'append' or 'overwrite'"):
        stream().sink_to_spark("csv", path, mode="ignore")
    with pytest.raises(ValueError, match=r"partition_by names \['country'\]"):
        stream().sink_to_spark("csv", path, partition_by="country")
    with pytest.raises(ValueError, match="a function decides itself how to write"):
        stream().sink_to_spark(print, path)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    with pytest.raises(InvalidProgramError, match="sink_to_spark: the columns are not known"):
        env.from_collection([1]).sink_to_spark("csv", path)


@pytest.mark.spark
def test_a_database_gets_every_row_once_if_no_process_dies_while_spark_writes(spark, tmp_path):
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    table = {"url": f"jdbc:derby:memory:{uuid.uuid4().hex};create=true", "dbtable": "numbers"}
    job = job_of(spark, tmp_path, "jdbc", table)
    job.write(3).checkpoint().write(2).checkpoint("metadata").crash().write(1).checkpoint("commit").crash().end()
    rows = spark.read.format("jdbc").options(**table).load().collect()
    assert sorted((each.id, each.rest) for each in rows) == [(number, f"r{number % 3}") for number in range(6)]


@pytest.mark.spark
def test_an_old_savepoint_is_restored_although_the_marks_of_its_batch_were_removed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(sink_module, "_MOST_MARKS", 2)
    seen = []
    write = lambda data_frame, batch_id: seen.append(sorted(each.id for each in data_frame.collect()))
    job = job_of(spark, tmp_path, write)
    job.write(2).checkpoint()
    savepoint = job.last
    for _ in range(9):
        job.write(1).checkpoint()
    marks = [path.name for path in Path(tmp_path).glob("staging/*/_done-*") if "register" not in path.name]
    assert len(marks) <= 5
    job.last = savepoint
    job.crash().write(1).end()
    assert seen == [[0, 1], *([number] for number in range(2, 11)), [2]]


@pytest.mark.spark
def test_staged_rows_that_are_gone_are_no_batch_that_was_written(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(sink_module, "_MOST_MARKS", 2)
    job = job_of(spark, tmp_path, lambda data_frame, batch_id: None)
    for _ in range(9):
        job.write(1).checkpoint()
    job.write(2).checkpoint("metadata")
    for path in Path(tmp_path).glob("staging/*/.*"):
        path.unlink()
    with pytest.raises(JobExecutionError, match="commit"):
        job.crash()


@pytest.mark.parametrize("keys_of_page", [1, 3, 100])
def test_register_of_batches_keeps_all_keys_in_few_files(tmp_path, monkeypatch, keys_of_page):
    monkeypatch.setattr(sink_module, "_KEYS_OF_PAGE", keys_of_page)
    files, folder = store_at(str(tmp_path))
    register = sink_module._Register(files, f"{folder}/_done-register")
    assert register.all_keys() == set()
    for number in range(0, 12, 2):
        register.add([f"{number}-a", f"{number + 1}-b"])
    again = sink_module._Register(files, f"{folder}/_done-register")
    assert again.all_keys() == {f"{number}-{'ab'[number % 2]}" for number in range(12)}
    assert len(list(tmp_path.iterdir())) <= -(-12 // keys_of_page)
