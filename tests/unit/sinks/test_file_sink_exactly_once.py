"""FileSink under random failures: what a reader sees is each element once, in whole files that never change."""

from __future__ import annotations

import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st
from sink_job import CHECKPOINT_STEPS, SinkJob, visible_files

from penstock.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.file_system import FileCompactor, FileCompactStrategy


class ByRemainder(BucketAssigner):
    """Three folders, so that several files are open at once."""

    def get_bucket_id(self, element, context):
        return f"remainder={int(element) % 3}"


class FramedWriter(BulkWriter):
    """A bulk format: without its last line a file is worthless."""

    def __init__(self, stream):
        self._stream = stream
        self._held = []

    def add_element(self, element):
        self._held.append(element)

    def finish(self):
        self._stream.write("".join(f"{each}\n" for each in [*self._held, "end"]).encode())


class FramedWriters(BulkWriterFactory):
    def create(self, stream):
        return FramedWriter(stream)


def row_sink(folder, part_size, strategy=None):
    policy = RollingPolicy.default_rolling_policy(part_size, rollover_interval=50, inactivity_interval=20)
    builder = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).with_rolling_policy(policy)
    if strategy is not None:
        builder.enable_compact(strategy, FileCompactor.concat_file_compactor(b"\n"))
    return builder.with_bucket_assigner(ByRemainder()).with_bucket_check_interval(5).build()


def bulk_sink(folder):
    return FileSink.for_bulk_format(folder, FramedWriters()).with_bucket_assigner(ByRemainder()).build()


class Reader:
    """Looks at the folder after every step."""

    def __init__(self, folder, is_bulk):
        self._folder = folder
        self._is_bulk = is_bulk
        self._seen = {}

    def numbers(self):
        files = visible_files(self._folder)
        assert {path: files.get(path) for path in self._seen} == self._seen, "a finished file changed"
        self._seen = files
        return sorted(number for content in files.values() for number in self._numbers_in(content))

    def _numbers_in(self, content):
        assert content.endswith(b"\n")
        lines = content.decode().split()
        if self._is_bulk:
            assert lines.pop() == "end"
        return map(int, lines)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("wait"), st.sampled_from([1, 10, 60])),
        st.tuples(st.sampled_from(["fail", "crash"]), st.sampled_from([None, *CHECKPOINT_STEPS])),
        st.tuples(st.just("rescale"), st.integers(1, 3)),
        st.just(("checkpoint", None)),
        st.just(("abort", None)),
    ),
    max_size=25,
)


def take(job, kind, what):
    match kind:
        case "write":
            job.write(what)
        case "wait":
            job.processing_time(job.now_ms + what)
        case "checkpoint":
            job.checkpoint()
        case "abort":
            job.aborted_checkpoint()
        case "rescale":
            job.fail(parallelism=what)
        case _:
            if what is not None:
                job.checkpoint(last_step=what)
            getattr(job, kind)()


@settings(max_examples=200)
@given(steps=steps, parallelism=st.integers(1, 2), part_size=st.sampled_from([1, 5, 1000]), is_bulk=st.booleans())
def test_readers_see_every_element_exactly_once_whatever_fails(steps, parallelism, part_size, is_bulk):
    with tempfile.TemporaryDirectory() as folder:
        check(bulk_sink(folder) if is_bulk else row_sink(folder, part_size), folder, steps, parallelism, is_bulk)


def check(sink, folder, steps, parallelism, is_bulk=False):
    job = SinkJob(sink, folder, parallelism=parallelism)
    reader = Reader(folder, is_bulk)
    for kind, what in steps:
        take(job, kind, what)
        numbers = reader.numbers()
        safe = 0 if job.last is None else job.last.position
        assert len(set(numbers)) == len(numbers) and all(number < safe for number in numbers)
    written = job.position
    job.end()
    assert reader.numbers() == list(range(written))


by_checkpoints = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
by_size = FileCompactStrategy.builder().set_size_threshold(12).build()


@settings(max_examples=200)
@given(
    steps=steps,
    parallelism=st.integers(1, 2),
    part_size=st.sampled_from([1, 5, 1000]),
    strategy=st.sampled_from([by_checkpoints, by_size]),
)
def test_files_that_are_put_together_hold_every_element_once_whatever_fails(steps, parallelism, part_size, strategy):
    with tempfile.TemporaryDirectory() as folder:
        check(row_sink(folder, part_size, strategy), folder, steps, parallelism)
