"""A changed program continues from a savepoint: a source that had come to its end stays there, whatever kind it is."""

from __future__ import annotations

import contextlib

import pytest
from job_parts import (
    PATIENCE_S,
    Counting,
    Emitting,
    EmittingEverywhere,
    NumberServer,
    NumbersSource,
    environment,
    job_of,
    wait_until,
)

from penstock.common import Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors import FileSource, StreamFormat
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import CheckpointedFunction, KeyedProcessFunction, ParallelSourceFunction
from penstock.datastream.state import ValueStateDescriptor

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


class CountingEverywhere(Counting, ParallelSourceFunction, CheckpointedFunction):
    """The same in every subtask."""


def from_file(env, folder):
    (folder / "numbers.txt").write_text("".join(f"{number}\n" for number in range(1, 5)))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "numbers.txt")).build()
    return env.from_source(source, NO_WATERMARKS, "files").map(int)


def from_socket(env, port):
    return env.socket_text_stream("127.0.0.1", port).map(int)


KINDS = {
    "collection": lambda env, folder, port: env.from_collection([1, 2, 3, 4]),
    "sequence": lambda env, folder, port: env.from_sequence(1, 4),
    "number sequence": lambda env, folder, port: env.from_source(NumberSequenceSource(1, 4), NO_WATERMARKS, "numbers"),
    "splits": lambda env, folder, port: env.from_source(NumbersSource(1, 5), NO_WATERMARKS, "numbers"),
    "file": lambda env, folder, port: from_file(env, folder),
    "function": lambda env, folder, port: env.add_source(Emitting(1, 5)),
    "function with state": lambda env, folder, port: env.add_source(Counting(1, 5)),
    "parallel function": lambda env, folder, port: env.add_source(EmittingEverywhere(1, 5)).set_parallelism(1),
    "socket": lambda env, folder, port: from_socket(env, port),
}


class Total(KeyedProcessFunction):
    def open(self, runtime_context):
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self._total.update((self._total.value() or 0) + value)
        yield self._total.value()


def build(env, kind, folder, port, second_port, parallelism):
    """The source in question, and one that has not ended, in one region."""
    source = KINDS[kind](env, folder, port)
    open_end = from_socket(env, second_port)
    numbers = source.union(open_end)
    totals = numbers.key_by(lambda value: 0).process(Total()).uid("total").set_parallelism(parallelism)
    totals.print().set_parallelism(1)


SETTINGS = {"penstock.epoch.interval": "1 ms"}


def saved(kind, folder, port, second_port, expected, drain=False, path=None, parallelism=1):
    """Run until `expected` is the total and everything but the open end has ended; the savepoint's path."""
    env = environment()
    build(env, kind, folder, port, second_port, parallelism)
    job = job_of(env, SETTINGS if path is None else SETTINGS | {"execution.state-recovery.path": path}).start()
    wait_until(lambda: (job.lines and job.lines[-1] == expected) or job.failure)
    [runner] = job.master._runners
    ended = list(runner._sources._by_vertex.values())
    wait_until(lambda: sum(source.is_exhausted for source in ended) == len(ended) - 1 or job.failure)
    if job.failure:
        raise job.failure
    saved_to = job.master.stop_with_savepoint(str(folder / "savepoints"), drain).result(PATIENCE_S)
    job.join()
    return saved_to, job.lines


@pytest.mark.parametrize("parallelism", [1, 2], ids=["same job", "changed job"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_source_that_had_ended_is_not_read_again(tmp_path, kind, parallelism):
    with (
        contextlib.closing(NumberServer([1, 2, 3, 4])) as server,
        contextlib.closing(NumberServer([100])) as first,
        contextlib.closing(NumberServer([1000])) as second,
    ):
        server.may_hang_up.set()
        path, _ = saved(kind, tmp_path, server.port, first.port, 110)
        path, lines = saved(kind, tmp_path, server.port, second.port, 1110, path=path, parallelism=parallelism)
        assert lines == [1110], "only the open source has brought something"
        with contextlib.closing(NumberServer([10_000])) as third:
            _, lines = saved(kind, tmp_path, server.port, third.port, 11_110, path=path, parallelism=3 - parallelism)
        assert lines == [11_110], "and it stays so in a third job"


@pytest.mark.parametrize(("former", "now"), [(1, 3), (2, 1), (2, 2), (2, 3)])
@pytest.mark.parametrize("function", [EmittingEverywhere, CountingEverywhere])
def test_parallel_function_that_had_ended_stays_ended_at_any_parallelism(tmp_path, function, former, now):
    def run(port, parallelism, expected, path=None):
        env = environment()
        source = env.add_source(function(1, 5)).set_parallelism(parallelism)
        total = source.union(from_socket(env, port)).key_by(lambda value: 0).process(Total()).uid("total")
        total.print().set_parallelism(1)
        job = job_of(env, SETTINGS if path is None else SETTINGS | {"execution.state-recovery.path": path}).start()
        wait_until(lambda: (job.lines and max(job.lines) == expected) or job.failure)
        [runner] = job.master._runners
        wait_until(lambda: any(source.is_exhausted for source in runner._sources._by_vertex.values()) or job.failure)
        path = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        job.join()
        return path

    with contextlib.closing(NumberServer([100])) as first, contextlib.closing(NumberServer([1000])) as second:
        path = run(first.port, former, 100 + 10 * former)
        run(second.port, now, 1100 + 10 * former, path)
