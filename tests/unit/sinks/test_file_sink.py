"""FileSink: names, folders, when files are finished, and what a restart does with them."""

from __future__ import annotations

import io
import os
import re
from datetime import datetime, timezone

import pytest
from sink_job import SinkJob, hidden_files, visible_files

from penstock.common import Row, Types
from penstock.common.exceptions import JobExecutionError
from penstock.common.serialization import Encoder, SimpleStringSchema
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, LineEncoder, OutputFileConfig, RollingPolicy
from penstock.datastream.formats.json import JsonRowSerializationSchema
from penstock.files.arrow_store import ArrowStore

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def rows(folder, **policy):
    """Lines in the folder itself; files are finished only as `policy` says."""
    never = {"part_size": 1 << 30, "rollover_interval": 1 << 40, "inactivity_interval": 1 << 40}
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_rolling_policy(
        RollingPolicy.default_rolling_policy(**{**never, **policy})
    )


def contents(folder):
    return sorted(visible_files(folder).values())


def test_files_have_flinks_names_and_are_hidden_until_their_checkpoint_is_complete(tmp_path):
    names = OutputFileConfig.builder().with_part_prefix("clicks").with_part_suffix(".txt").build()
    sink = rows(tmp_path).with_output_file_config(names).build()
    job = SinkJob(sink, tmp_path).write(2)
    [hidden] = hidden_files(tmp_path)
    assert re.fullmatch(rf"\.clicks-{UUID}-0\.txt\.inprogress\.{UUID}", hidden) and contents(tmp_path) == []
    job.end()
    [visible] = visible_files(tmp_path)
    assert re.fullmatch(rf"clicks-{UUID}-0\.txt", visible) and visible in hidden
    assert contents(tmp_path) == [b"0\n1\n"] and hidden_files(tmp_path) == []


def test_files_of_one_bucket_are_numbered(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(3)
    job.end()
    assert sorted(name.rpartition("-")[2] for name in visible_files(tmp_path)) == ["0", "1", "2"]


def test_file_is_finished_when_it_is_large_enough(tmp_path):
    SinkJob(rows(tmp_path, part_size=4).build(), tmp_path).write(7).checkpoint()
    assert contents(tmp_path) == [b"0\n1\n2\n", b"3\n4\n5\n"]


def test_open_file_stays_hidden_over_a_checkpoint(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path).write(2).checkpoint().write(1).checkpoint()
    assert contents(tmp_path) == []
    job.end()
    assert contents(tmp_path) == [b"0\n1\n2\n"]


def test_old_and_idle_files_are_finished_when_buckets_are_checked(tmp_path):
    sink = rows(tmp_path, rollover_interval=100, inactivity_interval=40).with_bucket_check_interval(10).build()
    job = SinkJob(sink, tmp_path).write()
    assert job.operators[0].next_processing_time() == 10
    for now_ms in (10, 20, 30):
        job.processing_time(now_ms)
    assert job.checkpoint() and contents(tmp_path) == []
    job.processing_time(40).checkpoint()
    assert contents(tmp_path) == [b"0\n"]
    assert job.operators[0].next_processing_time() is None  # Nothing is open: the job may sleep.
    for now_ms in range(50, 141, 10):
        job.write().processing_time(now_ms)
    assert job.checkpoint() and contents(tmp_path) == [b"0\n", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"]
    job.close()


def test_file_restored_open_is_finished_by_time_too(tmp_path):
    sink = rows(tmp_path, inactivity_interval=40).with_bucket_check_interval(10).build()
    SinkJob(sink, tmp_path).write().checkpoint().fail().processing_time(50).checkpoint().close()
    assert contents(tmp_path) == [b"0\n"]


def test_former_process_that_still_writes_does_no_harm_to_what_was_restored(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path).write(2).checkpoint()
    [before] = hidden_files(tmp_path)
    with (tmp_path / before).open("ab") as former:
        job.fail()
        former.write(b"more\n")
    job.write(1).end()
    assert contents(tmp_path) == [b"0\n1\n2\n"]


def test_file_that_was_gone_on_with_is_there_until_the_next_checkpoint_is_complete(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path).write(2).checkpoint()
    [before] = hidden_files(tmp_path)
    job.fail().fail()
    assert before in hidden_files(tmp_path)
    job.checkpoint()
    [after] = hidden_files(tmp_path)
    assert before != after
    job.end()
    assert contents(tmp_path) == [b"0\n1\n"] and hidden_files(tmp_path) == []


def test_every_checkpoint_finishes_files_if_asked_to(tmp_path):
    sink = rows(tmp_path).with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    SinkJob(sink, tmp_path).write(2).checkpoint().write(1).checkpoint().checkpoint().close()
    assert contents(tmp_path) == [b"0\n1\n", b"2\n"] and hidden_files(tmp_path) == []


def test_bucket_is_the_time_of_writing_unless_told_otherwise(tmp_path):
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    assigner = BucketAssigner.date_time_bucket_assigner("yyyy/MM-dd", "UTC")
    job = SinkJob(builder.with_bucket_assigner(assigner).build(), tmp_path)
    job.now_ms = int(datetime(2024, 3, 1, tzinfo=timezone.utc).timestamp() * 1000)
    job.write().end()
    [path] = visible_files(tmp_path)
    assert path.startswith("2024/03-01/part-")


def test_own_bucket_assigner_sees_element_and_times(tmp_path):
    class ByEventTime(BucketAssigner):
        def get_bucket_id(self, element, context):
            now, timestamp = context.current_processing_time(), context.timestamp()
            return f"n={element}/t={timestamp},w={context.current_watermark()},now={now}"

    job = SinkJob(rows(tmp_path).with_bucket_assigner(ByEventTime()).build(), tmp_path)
    job.operators[0].process_watermark(7)
    job.processing_time(9).write(2).end()
    assert sorted(path.rpartition("/")[0] for path in visible_files(tmp_path)) == [
        "n=0/t=0,w=7,now=9",
        "n=1/t=1,w=7,now=9",
    ]


@pytest.mark.parametrize("bucket", ["../elsewhere", "/etc", 7, None])
def test_bucket_outside_of_the_sinks_folder_is_refused(tmp_path, bucket):
    class Astray(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    job = SinkJob(rows(tmp_path).with_bucket_assigner(Astray()).build(), tmp_path)
    with pytest.raises(ValueError, match=r"Astray chose the bucket .* must be the name of a folder below"):
        job.write()


def test_own_rolling_policy_sees_file_and_element(tmp_path):
    class BeforeEachThird(RollingPolicy):
        def should_roll_on_checkpoint(self, part_file_state):
            return False

        def should_roll_on_event(self, part_file_state, element):
            return int(element) % 3 == 0 and part_file_state.get_size() == 6

        def should_roll_on_processing_time(self, part_file_state, current_time):
            return False

    SinkJob(rows(tmp_path).with_rolling_policy(BeforeEachThird()).build(), tmp_path).write(8).end()
    assert contents(tmp_path) == [b"0\n1\n2\n", b"3\n4\n5\n", b"6\n7\n"]


def test_lines_look_as_print_shows_values_of_the_declared_type(tmp_path):
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    truths = stream.map(lambda number: (number > 0, None), Types.TUPLE([Types.BOOLEAN(), Types.STRING()]))
    for declared, expected in ((stream.map(bool), b"(True,None)\n"), (truths, b"(true,null)\n")):
        encoder = declared.sink_to(rows(tmp_path).build()).transformation.operator.sink.options.encoder
        line = io.BytesIO()
        encoder.encode((True, None), line)
        assert line.getvalue() == expected


# --- failures --------------------------------------------------------------------------------------------------------


def test_restart_cuts_the_open_file_to_what_the_checkpoint_knows(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path).write(2).checkpoint().write(5)
    job.fail().write(1).end()
    assert contents(tmp_path) == [b"0\n1\n2\n"] and hidden_files(tmp_path) == []


def test_failure_removes_files_that_no_checkpoint_knows(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(3)
    assert len(hidden_files(tmp_path)) == 3
    for operator in job.operators:
        operator.close()
    assert hidden_files(tmp_path) == []


def test_without_checkpoints_what_was_written_is_seen_at_once_and_stays(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=4).build(), tmp_path, takes_checkpoints=False).write(5)
    job.processing_time(0)  # The end of the batch.
    written = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(written.values()) == [b"0\n1\n2\n", b"3\n4\n"]
    job.close()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == written and contents(tmp_path) == []


def test_open_files_of_former_subtasks_are_finished_after_a_change_of_parallelism(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path, parallelism=3).write(6).checkpoint()
    job.fail(parallelism=1).checkpoint()
    assert contents(tmp_path) == [b"1\n4\n", b"2\n5\n"]
    job.end()
    assert contents(tmp_path) == [b"0\n3\n", b"1\n4\n", b"2\n5\n"]


def test_restart_reports_if_the_open_file_is_gone_or_too_short(tmp_path):
    job = SinkJob(rows(tmp_path).build(), tmp_path).write(2).checkpoint()
    [hidden] = tmp_path.glob(".part*")
    os.truncate(hidden, 1)
    with pytest.raises(JobExecutionError, match=r"needs the first 4 bytes of .*, but it has only 1; the job wrote on"):
        job.fail()
    hidden.unlink()
    with pytest.raises(JobExecutionError, match=r"but it is gone"):
        job.fail()


def test_files_that_were_fetched_after_their_commit_do_not_stop_a_restart(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(2).checkpoint()
    for name in visible_files(tmp_path):
        (tmp_path / name).unlink()
    job.fail().write(1).end()
    assert contents(tmp_path) == [b"2\n"]  # and 1, the open file, which had been committed


def test_commit_reports_which_file_is_lost(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(2).checkpoint("metadata")
    for hidden in tmp_path.glob(".part*"):
        hidden.unlink()
    with pytest.raises(JobExecutionError, match=r"sink 'Sink: Writer': PartFile.*neither this file nor .* is there"):
        job.crash()


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1)])
def test_restarts_do_not_take_a_lost_file_for_a_committed_one(tmp_path, lost):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(3).checkpoint("metadata")
    for number in lost:
        [hidden] = tmp_path.glob(f".part-*-{number}.inprogress.*")
        hidden.unlink()
    for _ in range(3):
        with pytest.raises(JobExecutionError, match=r"PartFile.*neither this file nor .* is there"):
            job.fail()
        for name in visible_files(tmp_path):
            (tmp_path / name).unlink()  # Fetched by a reader: these were committed, and stay so.


def test_file_that_was_committed_before_another_failed_may_be_fetched(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(3).checkpoint("metadata")
    [second] = tmp_path.glob(".part-*-1.inprogress.*")
    content = second.read_bytes()
    second.unlink()
    with pytest.raises(JobExecutionError, match=r"part-[^/]*-1'.*neither this file nor"):
        job.fail()
    for name in visible_files(tmp_path):
        (tmp_path / name).unlink()
    second.write_bytes(content)
    job.fail()
    assert contents(tmp_path) == [content]


def test_commit_refuses_a_file_of_the_wrong_length(tmp_path):
    job = SinkJob(rows(tmp_path, part_size=1).build(), tmp_path).write(2).checkpoint("metadata")
    for hidden in tmp_path.glob(".part*"):
        hidden.write_bytes(b"")
    with pytest.raises(JobExecutionError, match=r"has 0 bytes, but the checkpoint says 2"):
        job.crash()
    assert visible_files(tmp_path) == {}


# --- where files are -------------------------------------------------------------------------------------------------


def test_where_files_cannot_be_cut_every_checkpoint_finishes_them(tmp_path, monkeypatch):
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    store = ArrowStore(SubTreeFileSystem(str(tmp_path), LocalFileSystem()))
    for module in ("writer", "committer"):
        name = f"penstock.datastream.connectors.file_system.{module}.store_at"
        monkeypatch.setattr(name, lambda path: (store, "out"))
    job = SinkJob(rows(tmp_path / "out").build(), tmp_path).write(2).checkpoint()
    assert contents(tmp_path) == [b"0\n1\n"]
    job.write(3).fail().write(1).checkpoint("metadata").fail().write(1).end()
    assert contents(tmp_path) == [b"0\n1\n", b"2\n", b"3\n"] and hidden_files(tmp_path) == []


def test_messages_of_a_schema_are_lines_that_can_be_read_again(tmp_path):
    row_type = Types.ROW_NAMED(["name"], [Types.STRING()])
    writes = LineEncoder(JsonRowSerializationSchema.builder().with_type_info(row_type).build())
    sink = FileSink.for_row_format(str(tmp_path), writes).build()
    SinkJob(sink, tmp_path, element_of=lambda number: Row(f"p{number}")).write(2).end()
    assert list(visible_files(tmp_path).values()) == [b'{"name":"p0"}\n{"name":"p1"}\n']
    with pytest.raises(ValueError, match="has a line break, so it would be read as several messages"):
        LineEncoder(SimpleStringSchema()).encode("a\nb", io.BytesIO())
    with pytest.raises(TypeError, match="LineEncoder needs a SerializationSchema, got 'x'"):
        LineEncoder("x")
