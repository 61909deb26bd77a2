"""Sources in whole jobs that fail and come back; the same on both targets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest

import penstock
from penstock.common import Configuration, Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.exceptions import InvalidProgramError, UserFunctionError
from penstock.common.serialization import Encoder
from penstock.common.time import Instant
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, FileSource, StreamFormat
from penstock.datastream.connectors.bad_records import BadRecords
from penstock.datastream.connectors.base import DescribedSourceFunction
from penstock.datastream.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.functions import CheckpointedFunction, RichParallelSourceFunction, SourceFunction
from penstock.datastream.state import ListStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "10",
}
NOTHING = WatermarkStrategy.no_watermarks()


class Lists(SimpleSource):
    """Three lists of numbers: 0 to 19, 100 to 119 and 200 to 219."""

    def splits(self):
        return [0, 100, 200]

    def read(self, split, offset):
        for number in range(offset or split, split + 20):
            yield number + 1, number


NUMBERS = [*range(20), *range(100, 120), *range(200, 220)]


class FailsAt:
    """Passes numbers on, and fails once at each of some of them, whatever process asks."""

    def __init__(self, folder: Path, *numbers: int) -> None:
        self._folder = folder
        self._numbers = numbers

    def __call__(self, number: int) -> int:
        mark = self._folder / f"failed-at-{number}"
        if number in self._numbers and not mark.exists():
            mark.touch()
            raise RuntimeError(f"no {number} today")
        return number


def collected(stream):
    with stream.execute_and_collect() as results:
        return list(results)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_own_source_is_read_to_its_end(run_target, mode):
    env = run_target(2).set_runtime_mode(mode)
    stream = env.from_source(Lists(), NOTHING, "lists").key_by(lambda number: number // 100).reduce(lambda a, b: a + b)
    results = collected(stream)
    sums = [sum(range(20)), sum(range(100, 120)), sum(range(200, 220))]
    assert set(sums) <= set(results)
    assert len(results) == (3 if mode is RuntimeExecutionMode.BATCH else len(NUMBERS))


def test_own_source_gives_every_record_once_although_the_job_fails(run_target, tmp_path):
    env = run_target(2, RESTARTS)
    fails = FailsAt(tmp_path, 3, 117, 219)
    assert sorted(collected(env.from_source(Lists(), NOTHING, "lists").map(fails))) == NUMBERS


class Counting(RichParallelSourceFunction, CheckpointedFunction):
    """Every subtask emits its numbers up to 40, and fails once at some number."""

    def __init__(self, folder, fails_at):
        self.fails = FailsAt(folder, fails_at)
        self.is_cancelled = False

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("next"))
        runtime = self.get_runtime_context()
        index, self.step = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        self.next = next(iter(self.state.get())) if context.is_restored() else index

    def snapshot_state(self, context):
        self.state.update([self.next])

    def run(self, ctx):
        while self.next < 40 and not self.is_cancelled:
            with ctx.get_checkpoint_lock():
                ctx.collect(self.fails(self.next))
                self.next += self.step

    def cancel(self):
        self.is_cancelled = True


def test_source_function_gives_every_element_once_although_it_and_the_job_fail(run_target, tmp_path):
    env = run_target(2, RESTARTS)
    (tmp_path / "function").mkdir()
    stream = env.add_source(Counting(tmp_path / "function", 23)).map(FailsAt(tmp_path, 7, 31))
    assert sorted(collected(stream)) == list(range(40))


class Quick(SourceFunction):
    def run(self, ctx):
        for number in range(20_000):
            ctx.collect(number)

    def cancel(self):
        pass


def test_function_that_is_held_back_again_and_again_gets_through(run_target):
    env = run_target(1, {"penstock.source.spool.max-records": "900", "penstock.epoch.interval": "1 ms"})
    assert collected(env.add_source(Quick())) == list(range(20_000))


class Failing(SourceFunction):
    def run(self, ctx):
        ctx.collect(1)
        raise LookupError("no such table")

    def cancel(self):
        pass


def test_failure_of_a_source_function_names_the_operator_and_shows_the_users_code(run_target):
    env = run_target()
    env.add_source(Failing(), "my table").print()
    with pytest.raises(UserFunctionError, match=r"operator 'Source: my table'.*LookupError: no such table") as caught:
        env.execute()
    assert "in run" in caught.value.user_traceback
    assert isinstance(caught.value.__cause__, LookupError)


class Endless(SourceFunction):
    def __init__(self, marker):
        self.marker = marker
        self.is_cancelled = False

    def run(self, ctx):
        while not self.is_cancelled:
            ctx.collect("x")
        self.marker.write_text("returned")

    def cancel(self):
        self.is_cancelled = True


def test_cancelling_the_job_cancels_its_source_functions(run_target, tmp_path):
    env = run_target()
    stream = env.add_source(Endless(tmp_path / "marker"))
    with stream.execute_and_collect() as results:
        assert next(results) == "x"
    assert (tmp_path / "marker").read_text() == "returned"


class OldNumbers(DescribedSourceFunction):
    def to_source(self):
        return NumberSequenceSource(1, 3)


def test_source_under_the_old_name_of_a_function_is_read_as_a_source(run_target):
    assert sorted(collected(run_target().add_source(OldNumbers()))) == [1, 2, 3]


def test_something_else_is_no_source_function(run_target):
    with pytest.raises(TypeError, match=r"add_source needs a SourceFunction with run\(ctx\)"):
        run_target().add_source(lambda ctx: None)


# --- files -----------------------------------------------------------------------------------------------------------


def test_lines_of_a_folder_are_read_once_although_the_job_fails(run_target, tmp_path):
    for number in range(4):
        lines = [str(number * 100 + each) for each in range(30)]
        (tmp_path / f"{number}.txt").write_text("\n".join(lines))
    env = run_target(2, RESTARTS)
    (tmp_path / "_marks").mkdir()
    stream = env.read_text_file(str(tmp_path)).map(int).map(FailsAt(tmp_path / "_marks", 5, 312))
    assert sorted(collected(stream)) == [number * 100 + each for number in range(4) for each in range(30)]


def test_bad_records_of_a_source_are_a_stream_of_their_own(run_target, tmp_path):
    (tmp_path / "a.json").write_text('{"name":"Ada"}\nno json\n{"name":"Bob"}\n')
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["name"], [Types.STRING()])).build()
    bad = OutputTag("bad")
    source = (
        FileSource.for_record_stream_format(StreamFormat.line_format(schema), str(tmp_path))
        .set_bad_records(BadRecords.to_side_output(bad))
        .build()
    )
    env = run_target()
    stream = env.from_source(source, NOTHING, "people")
    unreadable = stream.get_side_output(bad).map(lambda record: record.raw.decode())
    assert sorted(collected(stream.map(lambda row: row.name).union(unreadable))) == ["Ada", "Bob", "no json"]


def test_new_files_are_found_while_the_job_runs(run_target, tmp_path):
    (tmp_path / "1.txt").write_text("one\n")
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    source = builder.monitor_continuously(Duration.of_millis(20)).build()
    with run_target(2).from_source(source, NOTHING, "files").execute_and_collect() as results:
        assert next(results) == "one"
        (tmp_path / ".2.txt").write_text("two\n")
        os.rename(tmp_path / ".2.txt", tmp_path / "2.txt")
        assert next(results) == "two"


# --- time ------------------------------------------------------------------------------------------------------------


class TwoLogs(SimpleSource):
    """Two logs with the times 0 to 49, read by one subtask."""

    reads_in_turns = True

    def splits(self):
        return ["quick", "slow"]

    def read(self, split, offset):
        for time_ms in range(offset or 0, 50):
            yield time_ms + 1, (split, time_ms), time_ms


def test_no_record_is_late_when_splits_are_read_in_turns(run_target):
    late = OutputTag("late")
    env = run_target(1, {"penstock.epoch.max-records": "7", "penstock.epoch.interval": "1 ms"})
    windows = (
        env.from_source(TwoLogs(), WatermarkStrategy.for_monotonous_timestamps(), "logs")
        .map(lambda record: 1)
        .key_by(lambda one: one)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .side_output_late_data(late)
        .sum()
    )
    assert collected(windows) == [20, 20, 20, 20, 20]


def test_generated_elements_come_at_their_rate(run_target):
    source = DataGeneratorSource(lambda number: number, 30, RateLimiterStrategy.per_second(100))
    started = time.monotonic()
    assert sorted(collected(run_target(2).from_source(source, NOTHING, "numbers"))) == list(range(30))
    assert time.monotonic() - started > 0.25  # The last of them is earned after 0.3 s at the earliest.


# --- DataFrames ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_rows_of_a_data_frame_are_read_once_although_the_job_fails(spark, run_target, tmp_path):
    data_frame = spark.range(50).selectExpr("id", "concat('n', id) as name").repartition(3)
    env = run_target(2, RESTARTS)
    stream = env.from_data_frame(data_frame).map(lambda row: (row.id, row.name))
    fails = FailsAt(tmp_path, 11, 42)
    results = collected(stream.map(lambda pair: (fails(pair[0]), pair[1])))
    assert sorted(results) == [(number, f"n{number}") for number in range(50)]


@pytest.mark.spark
def test_rows_of_a_streaming_data_frame_are_read_once_although_the_job_fails(spark, run_target, tmp_path):
    for start in (0, 25):
        spark.range(start, start + 25).write.parquet(str(tmp_path / "rows" / f"from={start}"))
    files = spark.readStream.schema("id long").option("recursiveFileLookup", "true")
    stream = run_target(2, RESTARTS).from_data_frame(
        files.parquet(str(tmp_path / "rows")), trigger={"availableNow": True}
    )
    fails = FailsAt(tmp_path, 11, 42)
    assert sorted(collected(stream.map(lambda row: fails(row.id)))) == list(range(50))


@pytest.mark.spark
def test_columns_of_a_data_frame_keep_their_types(spark, run_target):
    data_frame = spark.sql(
        "select 1 as i, cast(2 as bigint) as l, 1.5d as d, cast(2.50 as decimal(5,2)) as n, 'x' as s, array(1, 2) as a"
        ", map('k', 1) as m, named_struct('f', 'g') as r, date'2024-05-06' as day"
        ", timestamp_ntz'2024-05-06 07:08:09' as t"
    )
    [row] = collected(run_target().from_data_frame(data_frame))
    assert isinstance(row, Row)
    assert [str(value) for value in row] == [
        "1", "2", "1.5", "2.50", "x", "[1, 2]", "{'k': 1}", "Row(f='g')", "2024-05-06", "2024-05-06 07:08:09",
    ]  # fmt: skip


@pytest.mark.spark
def test_a_stream_becomes_a_data_frame_and_comes_back(spark, run_target):
    types = Types.ROW_NAMED(
        ["id", "name", "price", "tags", "inner", "at"],
        [
            Types.LONG(),
            Types.STRING(),
            Types.BIG_DEC(),
            Types.LIST(Types.INT()),
            Types.ROW_NAMED(["x"], [Types.INT()]),
            Types.INSTANT(),
        ],
    )
    rows = [Row(n, f"n{n}", Decimal(n), [n, n], Row(n), Instant(n, 5000)) for n in range(7)]
    data_frame = run_target(2).from_collection(rows, types).rebalance().map(lambda row: row, types).to_data_frame()
    assert data_frame.selectExpr("sum(id)", "count(distinct inner.x)").first() == (21, 7)
    returned = collected(run_target(2).from_data_frame(data_frame))
    assert sorted((row.id, row.name, row.inner.x, row.at) for row in returned) == [
        (n, f"n{n}", n, Instant(n, 5000)) for n in range(7)
    ]


@pytest.mark.spark
def test_an_empty_stream_becomes_an_empty_data_frame(spark, run_target):
    types = Types.ROW_NAMED(["id"], [Types.LONG()])
    data_frame = run_target().from_collection([], types).to_data_frame()
    assert (data_frame.columns, data_frame.count()) == (["id"], 0)


def test_what_cannot_become_a_data_frame_is_reported_before_the_job_runs(run_target):
    with pytest.raises(InvalidProgramError, match="the columns are not known"):
        run_target().from_collection([1]).to_data_frame()
    types = Types.ROW_NAMED(["line"], [Types.STRING()])
    with pytest.raises(InvalidProgramError, match="'Source: Socket Stream' never ends"):
        run_target().socket_text_stream("localhost", 1).map(lambda line: Row(line), types).to_data_frame()


# --- savepoints ------------------------------------------------------------------------------------------------------

HELD_BACK = threading.Event()
PROCESSED = threading.Semaphore(0)


class HeldBack(SimpleSource):
    """The numbers of `Lists`, the second half of each only when it is time."""

    def splits(self):
        return [0, 100, 200]

    def read(self, split, offset):
        for number in range(offset or split, split + 20):
            while number >= split + 10 and not HELD_BACK.is_set():
                yield None
            yield number + 1, number


class HeldBackFunction(Counting):
    def __init__(self):
        self.is_cancelled = False

    def fails(self, number):
        if number >= 20:
            while not HELD_BACK.wait(0.01) and not self.is_cancelled:
                pass
        return number

    def run(self, ctx):
        while self.next < 40 and not self.is_cancelled:
            number = self.fails(self.next)
            if not self.is_cancelled:
                with ctx.get_checkpoint_lock():
                    ctx.collect(number)
                    self.next += self.step


def passed(number):
    PROCESSED.release()
    return number


@pytest.mark.parametrize(
    ("add", "before", "everything", "parallelism"),
    [
        (lambda env: env.from_source(HeldBack(), NOTHING, "lists"), 10, NUMBERS, 3),
        (lambda env: env.add_source(HeldBackFunction()), 20, list(range(40)), 1),
    ],
    ids=["simple source", "source function"],
)
@pytest.mark.parametrize("drain", [False, True])
def test_job_continues_from_the_savepoint_it_was_stopped_with(tmp_path, add, before, everything, parallelism, drain):
    HELD_BACK.clear()
    while PROCESSED.acquire(blocking=False):
        pass

    def start(parallelism, **recovery):
        settings = {"execution.target": "inline", "penstock.source.idle-poll-interval": "1 ms", **recovery}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(parallelism)
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        add(env).uid("source").map(passed).uid("passed").sink_to(sink.build()).uid("sink")
        return env.execute_async()

    def written():
        files = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name[0] != "."]
        return sorted(int(line) for path in files for line in path.read_text().split())

    first = start(1)
    for _ in range(before):
        assert PROCESSED.acquire(timeout=20)
    path = first.stop_with_savepoint(drain, str(tmp_path / "savepoints")).result()
    first.get_job_execution_result().result()
    assert set(written()) < set(everything)
    HELD_BACK.set()
    second = start(1 if drain else parallelism, **{"execution.state-recovery.path": path})
    second.get_job_execution_result().result()
    if drain:
        assert set(written()) < set(everything)  # It had come to its end.
    else:
        assert written() == everything


# --- another process -------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from penstock.common import Configuration, Encoder, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.simple_source import SimpleSource


class Letters(SimpleSource):
    def splits(self):
        return ["a", "b", "c"]

    def read(self, split, offset):
        for number in range(offset or 0, 60):
            while number >= int(end):
                yield None
            yield number + 1, f"{split}{number}"


out, checkpoints, restored, parallelism, end = sys.argv[1:]
settings = {
    "execution.target": "inline",
    "execution.checkpointing.interval": "20 ms",
    "execution.checkpointing.dir": checkpoints,
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "penstock.epoch.max-records": "5",
}
if restored:
    settings["execution.state-recovery.path"] = restored
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
env.set_parallelism(int(parallelism))
sink = FileSink.for_row_format(out, Encoder.simple_string_encoder())
stream = env.from_source(Letters(), WatermarkStrategy.no_watermarks(), "letters").uid("letters")
stream.print().uid("print")
sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
stream.sink_to(sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()).uid("out")
env.execute()
"""


@pytest.mark.slow
def test_killed_driver_is_continued_by_another_process_at_another_parallelism(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    out, checkpoints = tmp_path / "out", tmp_path / "checkpoints"

    def start(restored, parallelism, end):
        environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
        command = [sys.executable, "-u", str(program), str(out), str(checkpoints), restored, str(parallelism), str(end)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def written():
        files = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(line for path in files for line in path.read_text().split())

    everything = sorted(f"{split}{number}" for split in "abc" for number in range(60))
    first = start("", parallelism=2, end=40)
    for _ in range(80):  # Two of the splits, as far as they get.
        assert first.stdout.readline(), first.stderr.read()
    while not written():  # What is printed need not be part of a checkpoint yet.
        assert first.poll() is None
        threading.Event().wait(0.01)
    first.kill()
    first.communicate()
    assert 0 < len(written()) < len(everything)
    [job_folder] = checkpoints.iterdir()
    second = start(str(job_folder), parallelism=3, end=60)
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    assert written() == everything
