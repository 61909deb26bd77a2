"""Streaming DataFrames as a source, whatever fails in between."""

from __future__ import annotations

import json
import shutil
import uuid
from functools import partial
from pathlib import Path

import pytest
from source_job import SourceJob

from penstock.common import Configuration
from penstock.common.exceptions import JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.spark import batch_spool
from penstock.datastream.connectors.spark.batch_spool import BatchSpool, SpoolClosedError
from penstock.datastream.connectors.spark.data_frame_stream import StreamingDataFrameSource

pytestmark = pytest.mark.spark


def add_file(folder, numbers):
    """A file appears in one step, as the query expects."""
    hidden = folder / f".{uuid.uuid4().hex}"
    hidden.write_text("".join(json.dumps({"id": number}) + "\n" for number in numbers))
    hidden.rename(folder / hidden.name[1:])


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def numbers_in(spark, inbox):
    reader = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    return reader.json(str(inbox)).selectExpr("id", "concat('n', id) as name")


def read_until(job, count):
    while len(job.values) < count:
        job.wait_for_work()
        job.epoch()
    return job


def ids(job):
    assert all(row.name == f"n{row.id}" for row in job.values)
    return sorted(row.id for row in job.values)


def test_rows_come_once_although_tasks_fail_and_drivers_are_killed(spark, inbox):
    for start in range(0, 30, 10):
        add_file(inbox, range(start, start + 10))
    job = SourceJob(StreamingDataFrameSource(numbers_in(spark, inbox)), 2, settings={"penstock.epoch.max-records": "3"})
    read_until(job, 8).wait_for_work()
    job.epoch(is_checkpoint=False).fail()
    read_until(job, 20).crash(3)
    add_file(inbox, range(30, 40))
    read_until(job, 40).close()
    assert ids(job) == list(range(40))


def test_what_is_there_is_read_and_then_the_stream_ends(spark, inbox):
    for start in range(0, 30, 10):
        add_file(inbox, range(start, start + 10))
    source = StreamingDataFrameSource(numbers_in(spark, inbox), {"availableNow": True})
    job = SourceJob(source, 2, settings={"penstock.epoch.max-records": "4"})
    job.wait_for_work()
    while len(job.values) < 9:
        job.wait_for_work()
        job.epoch()
    job.crash().to_the_end()
    assert ids(job) == list(range(30))


def test_a_bounded_query_can_be_a_batch_job(spark, inbox):
    add_file(inbox, range(5))
    config = Configuration.from_dict({"execution.target": "inline", "execution.runtime-mode": "BATCH"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    stream = env.from_data_frame(numbers_in(spark, inbox), trigger={"availableNow": True}).map(lambda row: row.id)
    with stream.execute_and_collect() as results:
        assert sorted(results) == list(range(5))


def test_batches_that_were_read_are_removed_two_checkpoints_later(spark, inbox):
    job = SourceJob(StreamingDataFrameSource(numbers_in(spark, inbox)))
    for number in range(4):
        add_file(inbox, [number])
        read_until(job, number + 1)
    early = job.last
    for number in range(4, 8):
        add_file(inbox, [number])
        read_until(job, number + 1)
    job.epoch().epoch()
    folder = Path(job.coordinator.enumerator._spool._path)
    assert list((folder / "batches").iterdir()) == list((folder / "rows").iterdir()) == []
    job.last = early
    with pytest.raises(JobExecutionError, match=r"batch 4 of the query in .* was read and removed since"):
        read_until(job.crash(), 100)
    job.close()


def test_a_query_whose_folder_is_gone_is_not_begun_again(spark, inbox):
    """Its first batches would be taken for those that were read, whatever rows they have."""
    job = SourceJob(StreamingDataFrameSource(numbers_in(spark, inbox)))
    for number in range(3):
        add_file(inbox, [number])
        read_until(job, number + 1)
    # Not before the query has stopped: it writes its record of a batch after the job has read the batch.
    job.crash(meanwhile=partial(shutil.rmtree, job.coordinator.enumerator._spool._path))
    with pytest.raises(JobExecutionError, match=r"after its first 3 batches, but Spark's record of them is not there"):
        read_until(job, 100)
    job.close()


def test_a_query_that_fails_fails_the_job(spark, inbox):
    add_file(inbox, [1])
    failing = numbers_in(spark, inbox).selectExpr("cast(raise_error('no such luck') as long) as id", "name")
    job = SourceJob(StreamingDataFrameSource(failing))
    with pytest.raises(JobExecutionError, match="the query of the streaming DataFrame failed"):
        job.to_the_end()
    job.close()


def test_a_query_waits_for_a_job_that_is_behind(spark, inbox, monkeypatch):
    monkeypatch.setattr(batch_spool, "MOST_AHEAD", 2)
    spool = BatchSpool(str(inbox / "spool"), 0, 2)
    rows = spark.range(3)
    spool.add(rows, 0)
    spool.add(rows, 1)
    spool.make_room(1)
    spool.add(rows, 2)
    assert [spool.take(batch) is None for batch in range(4)] == [False, False, False, True]
    spool.close()
    with pytest.raises(SpoolClosedError):
        spool.add(rows, 3)


def test_a_batch_that_counts_stays_as_it_is(spark, inbox):
    folder = str(inbox / "spool")
    first = BatchSpool(folder, 0)
    first.add(spark.range(3), 0)
    files = first.take(0)
    BatchSpool(folder, 0).add(spark.range(5), 0)
    assert BatchSpool(folder, 0).take(0) == files


def test_a_batch_that_cannot_be_removed_is_only_in_the_way(tmp_path, monkeypatch, caplog):
    spool = BatchSpool(str(tmp_path / "spool"), 0)

    def refuse(files, path):
        raise PermissionError("not yours")

    monkeypatch.setattr(type(spool._files), "delete_folder", refuse)
    spool.remove(3, [str(tmp_path / "spool" / "rows" / "3-x" / "part-0")])
    assert "batch 3 in" in caplog.text and "not yours" in caplog.text


def test_a_batch_frame_has_no_trigger(spark):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    with pytest.raises(ValueError, match="only a streaming DataFrame has a trigger"):
        env.from_data_frame(spark.range(1), trigger={"availableNow": True})
