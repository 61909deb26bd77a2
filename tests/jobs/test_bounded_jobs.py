"""Whole jobs over bounded input; the same on both targets."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pytest

from penstock.common import Row, Types
from penstock.common.exceptions import InvalidProgramError
from penstock.common.serialization import SimpleStringEncoder
from penstock.datastream import MapFunction, RuntimeExecutionMode
from penstock.datastream.connectors import FileSink

TEXT = ["to be or not to be", "that is the question", "to sleep", "", "perchance to dream"]
SCORES = [("ada", 3, "x"), ("bob", 5, "x"), ("ada", 1, "y"), ("bob", 5, "y"), ("ada", 7, "z"), ("ada", 7, "w")]


def values(stream) -> list:
    with stream.execute_and_collect() as collected:
        return list(collected)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_word_count_ends_with_the_right_counts(run_target, parallelism):
    env = run_target(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    counts = (
        env.from_collection(TEXT)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    assert dict(values(counts)) == Counter(word for line in TEXT for word in line.split())


@pytest.mark.timeout(300)
def test_large_records_are_exchanged_with_default_settings(run_target):
    """By number of records alone, each channel would be one chunk of 120 MB."""
    size, records = 60_000, 4_000
    env = run_target(2)
    counts = (
        env.from_collection(list(range(records)))
        .map(lambda number: (number % 4, str(number % 10) * size, 1))
        .key_by(lambda element: element[0])
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
        .filter(lambda element: element[2] == records // 4)
        .map(lambda element: (element[0], len(element[1]), element[2]))
    )
    assert sorted(values(counts)) == [(key, size, records // 4) for key in range(4)]


@pytest.mark.timeout(300)
def test_a_record_of_100_megabytes_is_exchanged(run_target):
    lengths = (
        run_target(2)
        .from_collection([1, 100_000_000, 2])
        .map(lambda length: bytes(length))
        .key_by(len)
        .map(lambda content: (len(content), content.count(0)))
    )
    assert sorted(values(lengths)) == [(1, 1), (2, 2), (100_000_000, 100_000_000)]


def test_streaming_word_count_shows_every_step(run_target):
    env = run_target()
    counts = env.from_collection(["a b a", "b a"]).flat_map(str.split).map(lambda w: (w, 1)).key_by(0).sum(1)
    assert values(counts) == [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3)]


def test_printed_lines_name_the_subtask(run_target, capsys):
    env = run_target(2)
    env.from_collection(["a", "b", "c"]).key_by(lambda word: word).map(lambda word: word).print("seen")
    env.execute()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.partition("> ")[2] for line in lines) == ["a", "b", "c"]
    assert all(re.fullmatch(r"seen:[12]> [abc]", line) for line in lines)


def test_printed_values_look_as_flinks_do(run_target, capsys):
    env = run_target()
    env.from_collection([("a", 1), ("b", None)], Types.TUPLE([Types.STRING(), Types.INT()])).print()
    env.from_collection([Row("x", 2)], Types.ROW([Types.STRING(), Types.INT()])).print_to_err()
    env.execute()
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["(a,1)", "(b,null)"]
    assert "+I[x, 2]" in captured.err


def test_elements_may_be_of_classes_that_only_the_script_knows(run_target):
    @dataclass(frozen=True)
    class Point:
        x: int
        y: int

        def mirrored(self) -> Point:
            return Point(self.y, self.x)

    points = [Point(1, 2), Point(3, 4), Point(1, 2)]
    env = run_target(2)
    mirrored = env.from_collection(points).rebalance().map(lambda point: point.mirrored()).key_by(lambda point: point)
    counted = mirrored.map(lambda point: (point, type(point).__name__))
    assert Counter(values(counted)) == {(Point(2, 1), "Point"): 2, (Point(4, 3), "Point"): 1}


def test_function_objects_know_their_subtask(run_target):
    class WithSubtask(MapFunction):
        def open(self, runtime_context):
            self.where = (
                runtime_context.get_index_of_this_subtask(),
                runtime_context.get_number_of_parallel_subtasks(),
            )

        def map(self, value):
            return self.where

    env = run_target(3)
    seen = values(env.from_collection(range(6)).rebalance().map(WithSubtask()))
    assert Counter(seen) == {(0, 3): 2, (1, 3): 2, (2, 3): 2}


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_sequence_is_split_without_gaps_or_doubles(run_target, parallelism):
    assert sorted(values(run_target(parallelism).from_sequence(1, 1000))) == list(range(1, 1001))


def test_sequence_shorter_than_its_parallelism_is_whole(run_target):
    assert sorted(values(run_target(4).from_sequence(7, 8).map(lambda number: number))) == [7, 8]


def test_union_gives_all_elements_of_all_streams(run_target):
    env = run_target(2)
    small, large = env.from_collection([1, 2, 2]), env.from_sequence(100, 110)
    united = small.union(large, small).map(lambda number: number * 2)
    assert sorted(values(united)) == sorted([2, 4, 4] * 2 + [2 * n for n in range(100, 111)])


@pytest.mark.parametrize("exchange", ["rebalance", "rescale", "shuffle", "global_", "forward"])
def test_exchange_loses_and_doubles_nothing(run_target, exchange):
    env = run_target(2)
    stream = getattr(env.from_sequence(1, 500), exchange)().map(lambda number: number)
    assert sorted(values(stream)) == list(range(1, 501))


def test_rebalance_spreads_evenly(run_target):
    env = run_target(3)
    spread = env.from_collection(range(300)).rebalance().map(_subtask())
    assert Counter(values(spread)) == {0: 100, 1: 100, 2: 100}


def test_broadcast_reaches_every_subtask(run_target):
    env = run_target(3)
    spread = env.from_collection(range(10)).broadcast().map(_subtask())
    assert Counter(values(spread)) == {0: 10, 1: 10, 2: 10}


def test_custom_partitioner_decides(run_target):
    env = run_target(3)
    spread = env.from_collection(range(9)).partition_custom(lambda key, n: key % n, lambda number: number * 2)
    pairs = values(spread.map(_pair_with_subtask()))
    assert sorted(pairs) == sorted((number, number * 2 % 3) for number in range(9))


def _subtask() -> MapFunction:
    class Subtask(MapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.subtask

    return Subtask()


def _pair_with_subtask() -> MapFunction:
    class PairWithSubtask(MapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return value, self.subtask

    return PairWithSubtask()


@pytest.mark.parametrize(
    ("aggregation", "ada", "bob"),
    [
        ("sum", ("ada", 18, "x"), ("bob", 10, "x")),
        ("min", ("ada", 1, "x"), ("bob", 5, "x")),
        ("max", ("ada", 7, "x"), ("bob", 5, "x")),
        ("min_by", ("ada", 1, "y"), ("bob", 5, "x")),
        ("max_by", ("ada", 7, "z"), ("bob", 5, "x")),
    ],
)
def test_aggregations_end_with_flinks_values(run_target, aggregation, ada, bob):
    env = run_target(2)
    stream = getattr(env.from_collection(SCORES).key_by(lambda score: score[0]), aggregation)(1)
    last = {value[0]: value for value in values(stream)}
    assert last == {"ada": ada, "bob": bob}


def test_reduce_gives_every_intermediate_value_in_order(run_target):
    env = run_target(2)
    sums = env.from_sequence(1, 5).set_parallelism(1).key_by(lambda _: "all").reduce(lambda a, b: a + b)
    assert values(sums) == [1, 3, 6, 10, 15]


def test_several_sinks_of_one_job_all_get_their_elements(run_target, capsys):
    env = run_target(2)
    numbers = env.from_sequence(1, 4)
    numbers.filter(lambda number: number % 2 == 0).print("even")
    numbers.filter(lambda number: number % 2 == 1).print("odd")
    env.execute("two sinks")
    shown = sorted(re.sub(r":\d+>", ">", line) for line in capsys.readouterr().out.splitlines())
    assert shown == ["even> 2", "even> 4", "odd> 1", "odd> 3"]


@pytest.mark.parametrize("epoch_records", ["1", "7"])
def test_result_does_not_depend_on_the_epochs(run_target, epoch_records):
    env = run_target(2, {"penstock.epoch.max-records": epoch_records, "penstock.epoch.interval": "1 ms"})
    spread = env.from_collection(range(10)).rebalance().map(lambda number: (number % 3, number))
    sums = values(spread.key_by(lambda pair: pair[0]).sum(1))
    assert len(sums) == 10
    assert {key: max(total for each, total in sums if each == key) for key in range(3)} == {0: 18, 1: 12, 2: 15}


# --- programs that are none ------------------------------------------------------------------------------------------


def test_job_without_operators_is_refused(run_target):
    with pytest.raises(InvalidProgramError, match=r"the job has no operators; define a source and a sink"):
        run_target().execute()


def test_parallelism_of_zero_is_refused(run_target):
    with pytest.raises(InvalidProgramError, match="the parallelism must be a whole number of at least 1, got 0"):
        run_target().set_parallelism(0)


def test_function_that_cannot_be_sent_is_named(run_target):
    import threading

    lock = threading.Lock()
    env = run_target()
    env.from_collection([1]).map(lambda value: (value, lock.locked())).name("locked").print()
    message = "operator 'locked': its function cannot be sent to other processes ("
    with pytest.raises(InvalidProgramError, match=re.escape(message)) as caught:
        env.execute()
    assert "make those in open()" in str(caught.value)


def test_environment_can_run_one_job_after_the_other(run_target, capsys):
    env = run_target()
    env.from_collection([1]).print()
    env.execute()
    env.from_collection([2]).print()
    env.execute()
    assert capsys.readouterr().out == "1\n2\n"


class Subtask(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return value % 10, self.subtask


def test_a_union_of_keyed_streams_keeps_keys_together(run_target):
    env = run_target(2)
    one, two = (env.from_collection(range(start, start + 60)).key_by(lambda v: v % 10) for start in (0, 60))
    seen = Counter(values(one.union(two).map(Subtask())))
    assert list(seen.values()) == [12] * 10
    assert len({subtask for _, subtask in seen}) == 2


def test_a_sink_after_key_by_gets_each_key_in_one_subtask(run_target, tmp_path):
    env = run_target(2)
    sink = FileSink.for_row_format(str(tmp_path), SimpleStringEncoder()).build()
    env.from_collection([number % 10 for number in range(60)], Types.INT()).key_by(lambda v: v).sink_to(sink)
    env.execute()
    written = [set(path.read_text().split()) for path in tmp_path.rglob("part-*")]
    assert len(written) == 2 and written[0].isdisjoint(written[1])
    assert written[0] | written[1] == set(map(str, range(10)))
