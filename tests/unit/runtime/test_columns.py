"""Elements that travel as columns arrive as if each had been pickled: the same types, in the same order and place."""

from __future__ import annotations

import enum
import math
import struct
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from penstock.graph import partitioners as p
from penstock.graph.job_graph import JobEdge
from penstock.runtime import chunk, outputs
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import ChunkWriter, read_chunk
from penstock.runtime.columns import columns_of, declared_columns
from penstock.runtime.key_groups import key_group_of, subtask_of_key_group
from penstock.runtime.outputs import EdgeTarget, OperatorOutput, declared_form


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    pass


class Pair(tuple):
    pass


NAN_WITH_PAYLOAD = struct.unpack("d", struct.pack("q", 0x7FF8000000000123))[0]
ints = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 2**61 - 1, 1 - 2**61, -(2**63), 2**63 - 1])
floats = st.floats() | st.sampled_from([-0.0, 0.0, math.inf, NAN_WITH_PAYLOAD])
texts = st.text(max_size=5) | st.sampled_from(["", "\0", "a\0b", "\ud800", "word"])
plain = [ints, floats, st.booleans(), texts]
odd = st.one_of(
    st.none(),
    st.integers(2**63, 2**70),
    st.sampled_from([Colour.RED, Text("a"), Pair((1, 2)), np.int64(3), np.float64(1.5), b"bytes", ()]),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.lists(st.integers(), max_size=2),
)


@st.composite
def elements(draw, min_size: int = 1) -> list:
    """Mostly of one shape; now and then something else is among them."""
    items = draw(
        st.lists(
            st.sampled_from([*plain, st.tuples(ints, texts), st.tuples(st.tuples(floats))]), min_size=1, max_size=4
        )
    )
    shape = st.tuples(*items) if draw(st.booleans()) else items[0]
    made = draw(st.lists(shape, min_size=min_size, max_size=40))
    if draw(st.integers(0, 3)) == 0:
        made.insert(draw(st.integers(0, len(made))), draw(odd))
    return made


def exactly(value):
    """Two of these are equal only if nobody can tell the values apart."""
    if isinstance(value, (tuple, list)):
        return type(value), [exactly(item) for item in value]
    return type(value), struct.pack("d", value) if type(value) is float else value


def sent(given_batches, partitioner, targets, columns, type_info=None):
    """What arrives at each target: values, timestamps and keys, with the watermarks in between."""
    ready: list = []
    edge = EdgeTarget(JobEdge(0, 0, 1, 0, 0, partitioner), 0, 1, targets, 128, ready)
    output = OperatorOutput([edge], {}, declared_form(type_info), makes_columns=columns)
    for values, timestamps in given_batches:
        output.collect_batch(values, timestamps)
        output.emit_watermark(7)
    edge.end_epoch()
    arrived: dict = {}
    for row in ready:
        for event in read_chunk(row.chunk):
            at = arrived.setdefault(row.subtask, [])
            if not isinstance(event, Batch):
                at.append(event)
                continue
            keys = event.keys or [None] * len(event.values)
            times = event.timestamps or [None] * len(event.values)
            at += zip(map(exactly, event.values), map(exactly, times), map(exactly, keys), strict=True)
    return arrived, edge.records_out


@pytest.fixture(autouse=True)
def from_the_first_record_on(monkeypatch):
    monkeypatch.setattr(outputs, "_LEAST_RECORDS", 1)
    monkeypatch.setattr(outputs, "_MANY_RECORDS", 0)
    monkeypatch.setattr(outputs, "_LONGEST_PAUSE", 0)


def first_item(value):
    return value[0] if isinstance(value, tuple) and value else repr(value)


PARTITIONERS = [
    p.KeyGroupStreamPartitioner(first_item),
    p.KeyGroupStreamPartitioner(repr),
    p.KeyGroupStreamPartitioner(lambda value: len(repr(value))),
    p.KeyGroupStreamPartitioner(lambda value: (1, repr(value))),
    p.RebalancePartitioner(),
    p.BroadcastPartitioner(),
    p.GlobalPartitioner(),
]


@st.composite
def batches(draw):
    made = []
    for values in draw(st.lists(elements(), min_size=1, max_size=4)):
        each = draw(st.sampled_from([ints, st.none(), ints | st.none()]))
        times = st.none() | st.lists(each, min_size=len(values), max_size=len(values))
        made.append((values, draw(times)))
    return made


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@given(given_batches=batches(), targets=st.integers(1, 4))
@settings(max_examples=60)
def test_columns_are_not_seen_by_who_receives_them(partitioner, given_batches, targets):
    assert sent(given_batches, partitioner, targets, True) == sent(given_batches, partitioner, targets, False)


@pytest.mark.parametrize("selector", [lambda value: value[0], lambda value: value[-1], itemgetter(0), itemgetter(-2)])
@given(pairs=st.sampled_from(plain).flatmap(lambda item: st.lists(st.tuples(item, ints), min_size=1, max_size=30)))
def test_a_key_that_is_an_item_goes_to_its_owner(selector, pairs):
    partitioner = p.KeyGroupStreamPartitioner(selector)
    arrived, _ = sent([(pairs, None)], partitioner, 3, True)
    assert arrived == sent([(pairs, None)], partitioner, 3, False)[0]
    for subtask, events in arrived.items():
        for event in events:
            if isinstance(event, tuple) and event[2][0] in (int, str):
                assert subtask_of_key_group(key_group_of(event[2][1], 128), 128, 3) == subtask


TYPES = [
    Types.TUPLE([Types.LONG(), Types.STRING()]),
    Types.TUPLE([Types.INT(), Types.DOUBLE()]),
    Types.TUPLE([Types.SHORT(), Types.BOOLEAN(), Types.BYTE()]),
    Types.TUPLE([Types.LONG(), Types.PICKLED_BYTE_ARRAY()]),
    Types.TUPLE([Types.FLOAT(), Types.LONG()]),
    Types.LONG(),
    Types.INT(),
    Types.DOUBLE(),
    Types.FLOAT(),
    Types.STRING(),
    Types.BOOLEAN(),
]
EDGES = [2**7 - 1, 2**7, -(2**7), 2**15, -(2**15) - 1, 2**31 - 1, 2**31, -(2**31)]


@pytest.mark.parametrize("type_info", TYPES, ids=str)
@given(
    values=st.one_of(
        elements(),
        st.lists(st.tuples(st.sampled_from(EDGES), texts | st.booleans() | floats), min_size=1, max_size=6),
        st.lists(st.sampled_from(EDGES), min_size=1, max_size=6),
    )
)
@example(values=[1, True])
@example(values=[(1, 2), (1, 2, 3)])
@settings(max_examples=60)
def test_elements_get_the_form_of_their_declared_type(type_info, values):
    def outcome(columns):
        try:
            return sent([(values, None)], p.RebalancePartitioner(), 2, columns, type_info)
        except (InvalidProgramError, OverflowError, ValueError) as error:
            return str(error)

    assert outcome(True) == outcome(False)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_gives_the_same_with_and_without_columns(parallelism, monkeypatch):
    made = []
    monkeypatch.setattr("penstock.runtime.columns.columns_of", lambda values: made.append(0) or columns_of(values))

    def results(is_columnar):
        config = Configuration.from_dict(
            {"execution.target": "inline", "penstock.columnar-exchange.enabled": str(is_columnar).lower()}
        )
        env = StreamExecutionEnvironment.get_execution_environment(config)
        env.set_parallelism(parallelism)
        pairs = env.from_collection([(number % 7, f"word {number}") for number in range(200)])
        keyed = pairs.key_by(lambda pair: pair[0]).reduce(lambda one, other: (one[0], one[1] + other[1]))
        return sorted(keyed.execute_and_collect())

    without = results(False)
    assert not made
    assert results(True) == without
    assert made


WINDOWS = [EventTimeSessionWindows.with_gap(Time.milliseconds(5)), TumblingEventTimeWindows.of(Time.milliseconds(9))]


@pytest.mark.parametrize("assigner", WINDOWS, ids=lambda assigner: type(assigner).__name__)
@settings(max_examples=25, deadline=None)
@given(
    records=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=40),
    key_of=st.sampled_from([lambda pair: pair[0], lambda pair: pair[1] % 3, lambda pair: pair[1] % 3 / 2]),
)
def test_partial_results_of_windows_may_go_in_columns(assigner, records, key_of):
    def results(is_columnar):
        config = {"execution.target": "inline", "penstock.columnar-exchange.enabled": str(is_columnar).lower()}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])
        timed = env.from_collection(records).assign_timestamps_and_watermarks(times)
        windowed = timed.key_by(key_of).window(assigner)
        reduced = windowed.reduce(lambda one, other: (one[0] + other[0], one[1] + other[1])).set_parallelism(2)
        return sorted(reduced.execute_and_collect())

    assert results(True) == results(False)


def test_plain_elements_do_have_columns():
    """Otherwise the tests above compare one way with itself."""
    for values in (
        [1, 2],
        [1.5, math.nan],
        [True],
        ["a", "\0"],
        [(1, "a", 2.5, False), (2, "", -0.0, True)],
        [(1, (2, ("a", 2.5)), 3)],
    ):
        columns = columns_of(values)
        writer = ChunkWriter()
        writer.add_columns(columns)
        (batch,) = read_chunk(writer.take())
        assert exactly(batch.values) == exactly(values)
    assert columns_of([(1, 2), (3, 4)]).fit(declared_columns(TYPES[0])) is False
    assert columns_of([(1, "b")]).fit(declared_columns(TYPES[0]))


@pytest.mark.parametrize(
    "values",
    [[1, True], [1, None], [2**63], [Colour.RED], [Text("a")], [Pair((1, 2))], [(1,), (1, 2)], [()], [(1, ())]],
)
def test_what_a_column_cannot_hold_exactly_has_none(values):
    assert columns_of(values) is None


def test_texts_that_come_again_and_again_are_sent_once():
    words = [f"a rather long word with number {number}" for number in range(10)]
    values = [(word, 1) for word in words * 100]
    writer = ChunkWriter()
    writer.add_columns(columns_of(values))
    sent_chunk = writer.take()
    assert len(sent_chunk) < 20 * len(values)
    (batch,) = read_chunk(sent_chunk)
    assert batch.values == values and len({id(word) for word, _ in batch.values}) == len(words)


@given(texts_of=st.lists(st.text(max_size=30), min_size=1, max_size=30), most=st.integers(200, 2000))
def test_columns_too_large_for_a_chunk_are_cut(texts_of, most):
    values = [(text * 20, at) for at, text in enumerate(texts_of)]
    writer = ChunkWriter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "CHUNK_BYTES", most)
        writer.add_columns(columns_of(values))
        writer.add_watermark(3)
        chunks = list(writer.take_chunks())
    read = [event for each in chunks for event in read_chunk(each)]
    assert [value for event in read[:-1] for value in event.values] == values
    assert all(len(each) <= most or len(next(read_chunk(each)).values) == 1 for each in chunks)
