"""HybridSource: sources one after the other, every record once, whatever fails at the seam."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_job import SourceJob

from penstock.common import Configuration
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import Boundedness, InputStatus, SourceReader, SplitEnumerator


class Lists(SimpleSource):
    """(name, 0), (name, 1) and so on, in splits called by the name and a number."""

    def __init__(self, name, *lengths, in_turns=False):
        super().__init__()
        self.name, self.lengths, self.reads_in_turns = name, lengths, in_turns

    def splits(self):
        return range(len(self.lengths))

    def read(self, split, offset):
        for number in range(offset or 0, self.lengths[split]):
            yield number + 1, (self.name, split, number)

    def all(self):
        return [(self.name, split, number) for split, length in enumerate(self.lengths) for number in range(length)]


class Endless(Lists):
    def get_boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED


def hybrid(first, *others):
    builder = HybridSource.builder(first)
    for other in others:
        builder.add_source(other)
    return builder.build()


def few_at_once(records):
    return {"penstock.epoch.max-records": str(records)}


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_each_source_begins_when_all_subtasks_are_through_with_the_one_before(parallelism):
    sources = [Lists("a", 7, 1), Lists("b", 3, 3, 3, in_turns=True), Lists("c", 5)]
    job = SourceJob(hybrid(*sources), parallelism, settings=few_at_once(2)).to_the_end()
    assert sorted(job.values) == sorted(value for source in sources for value in source.all())
    assert [name for name, _, _ in job.values] == ["a"] * 8 + ["b"] * 9 + ["c"] * 5


def test_source_without_splits_is_passed_over():
    job = SourceJob(hybrid(Lists("a"), Lists("b", 2), Lists("c")), 2).to_the_end()
    assert job.values == [("b", 0, 0), ("b", 0, 1)]


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["fail", "rebuild", 1, 2, 3])), max_size=5),
    st.booleans(),
)
def test_every_record_comes_once_whatever_fails(lengths, events, in_turns):
    sources = [Lists(str(number), *each, in_turns=in_turns) for number, each in enumerate(lengths)]
    job = SourceJob(hybrid(*sources), 2, settings=few_at_once(2))
    for epochs, event in events:
        for _ in range(epochs):
            if not job.coordinator.is_exhausted:
                job.wait_for_work()
                job.epoch()
        if job.coordinator.is_exhausted:
            break
        if event == "fail":
            job.fail()
        elif event == "rebuild":
            if job.last is not None:
                job.rebuild()
        else:
            job.crash(event)
    job.to_the_end()
    assert sorted(job.values) == sorted(value for source in sources for value in source.all())
    assert [value[0] for value in job.values] == sorted(value[0] for value in job.values)


def test_last_source_may_continue_for_ever():
    source = hybrid(Lists("a", 2), Endless("b", 2))
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED and not source.is_bounded
    job = SourceJob(source)
    while len(job.values) < 4:
        job.wait_for_work()
        job.epoch()
    assert job.values == [("a", 0, 0), ("a", 0, 1), ("b", 0, 0), ("b", 0, 1)]
    assert not job.coordinator.is_exhausted
    job.close()


def test_numbers_and_files_one_after_the_other(tmp_path):
    (tmp_path / "history.txt").write_text("x\ny\n")
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    assert SourceJob(hybrid(files, NumberSequenceSource(-3, 20))).to_the_end().values == ["x", "y", *range(-3, 21)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def test_watermarks_continue_across_the_seam():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    job = SourceJob(hybrid(Lists("a", 3), Lists("b", 6)), strategy=strategy, settings=few_at_once(3)).to_the_end()
    [found] = job.watermarks
    assert found == sorted(found) and found[0] >= -1 and 4 in found


@pytest.mark.parametrize("parallelism", [1, 3])
def test_batch_job_reads_all_sources(tmp_path, parallelism):
    (tmp_path / "history.txt").write_text("1\n2\n")
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    configuration = Configuration().set_string("execution.target", "inline")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = hybrid(files, NumberSequenceSource(3, 5), Lists("b", 1, 1, in_turns=True))
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "all").map(str).execute_and_collect() as found:
        assert sorted(found) == ["('b', 0, 0)", "('b', 1, 0)", "1", "2", "3", "4", "5"]


# --- factories -------------------------------------------------------------------------------------------------------


class CountingEnumerator(SplitEnumerator):
    """No splits, but something to know for who comes next."""

    def __init__(self, context, known=0):
        self._context, self.known = context, known

    def handle_split_request(self, subtask_id, requester_hostname):
        self._context.signal_no_more_splits(subtask_id)

    def add_splits_back(self, splits, subtask_id):
        raise AssertionError("there are none")

    def add_reader(self, subtask_id):
        self.known += 1

    def snapshot_state(self, checkpoint_id):
        return self.known


class AskingReader(SourceReader):
    """Ends when the enumerator says so."""

    def __init__(self, context):
        self._context, self._status = context, InputStatus.NOTHING_AVAILABLE

    def start(self):
        self._context.send_split_request()

    def poll_next(self, output):
        return self._status

    def snapshot_state(self, checkpoint_id):
        return []

    def add_splits(self, splits):
        raise AssertionError("there are none")

    def notify_no_more_splits(self):
        self._status = InputStatus.END_OF_INPUT


class Counting(Lists):
    def create_enumerator(self, context):
        return CountingEnumerator(context)

    def restore_enumerator(self, context, checkpoint):
        return CountingEnumerator(context, checkpoint)

    def create_reader(self, context):
        return AskingReader(context)


def as_many_as_were_counted(context):
    return Lists("made", context.get_previous_enumerator().known)


def test_source_may_be_made_when_its_turn_comes_and_stays_the_same_after_a_failure():
    builder = HybridSource.builder(Counting("count"))
    source = builder.add_source(as_many_as_were_counted, Boundedness.BOUNDED).add_source(Lists("z", 1)).build()
    job = SourceJob(source, 3, settings=few_at_once(1))
    while not job.values:
        job.wait_for_work()
        job.epoch()
    job.crash(2).to_the_end()
    assert job.values == [("made", 0, 0), ("made", 0, 1), ("made", 0, 2), ("z", 0, 0)]


def test_factory_must_make_what_was_said():
    source = HybridSource.builder(Lists("a")).add_source(lambda _: Lists("b"), Boundedness.CONTINUOUS_UNBOUNDED).build()
    with pytest.raises(JobExecutionError, match="made a Lists that is BOUNDED, but add_source"):
        SourceJob(source).to_the_end()


# --- misuse ----------------------------------------------------------------------------------------------------------


def test_misuse_is_refused_when_the_source_is_built():
    with pytest.raises(InvalidProgramError, match="all sources but the last one must be bounded"):
        HybridSource.builder(Endless("a", 1)).add_source(Lists("b", 1))
    with pytest.raises(InvalidProgramError, match="needs to know if the source will be bounded"):
        HybridSource.builder(Lists("a", 1)).add_source(lambda context: Lists("b"))
    with pytest.raises(InvalidProgramError, match="'b' is not a source that is read in splits"):
        HybridSource.builder(Lists("a", 1)).add_source("b")


def test_sources_that_were_read_may_not_be_removed():
    job = SourceJob(hybrid(Lists("a", 1), Lists("b", 4)), settings=few_at_once(1))
    while len(job.values) < 2:
        job.wait_for_work()
        job.epoch()
    job._source = hybrid(Lists("a", 1))
    with pytest.raises(JobExecutionError, match="sources that were read may not be removed"):
        job.crash()
