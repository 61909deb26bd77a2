from __future__ import annotations

import pickle
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row, RowKind
from penstock.runtime import chunk
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import ChunkWriter, EndOfData, Status, Watermark, encode, encode_in_driver, read_chunk

times = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.tuples(st.text(max_size=3), st.integers()))


@st.composite
def batches(draw) -> Batch:
    content = draw(st.lists(values, min_size=1, max_size=8))
    size = len(content)
    timestamps = draw(st.none() | st.lists(times | st.none(), min_size=size, max_size=size))
    keys = draw(st.none() | st.lists(st.text(max_size=3), min_size=size, max_size=size))
    return Batch(content, timestamps, keys)


events = st.lists(
    batches() | times.map(Watermark) | st.booleans().map(Status) | st.just(EndOfData()), min_size=1, max_size=12
)


def write(writer: ChunkWriter, event) -> None:
    if isinstance(event, Batch):
        writer.add_batch(event.values, event.timestamps, event.keys)
    elif isinstance(event, Watermark):
        writer.add_watermark(event.timestamp)
    elif isinstance(event, Status):
        writer.add_status(event.is_idle)
    else:
        writer.add_end_of_data()


def flat(given_events) -> list:
    """Events one by one, records apart: batches may be joined on the way, and only the last of watermarks in a row."""
    flattened: list = []
    for event in given_events:
        if isinstance(event, Batch):
            for at, value in enumerate(event.values):
                timestamp = None if event.timestamps is None else event.timestamps[at]
                key = ("no key",) if event.keys is None else event.keys[at]
                flattened.append((value, timestamp, key))
            continue
        if isinstance(event, Watermark) and flattened and isinstance(flattened[-1], Watermark):
            flattened.pop()
        flattened.append(event)
    return flattened


@given(events)
def test_what_was_written_is_read_in_order(written):
    writer = ChunkWriter()
    for event in written:
        write(writer, event)
    assert flat(read_chunk(writer.take())) == flat(written)


@given(events, events)
def test_chunks_in_a_row_carry_on_where_the_last_one_ended(first, second):
    writer = ChunkWriter()
    for event in first:
        write(writer, event)
    chunk = writer.take()
    for event in second:
        write(writer, event)
    assert flat(read_chunk(chunk)) == flat(first)
    assert flat(read_chunk(writer.take())) == flat(second)


def test_nothing_written_gives_no_chunk():
    writer = ChunkWriter()
    assert writer.take() is None
    writer.add_batch([1], None, None)
    writer.take()
    assert writer.take() is None


def test_batches_of_one_kind_are_read_as_one():
    writer = ChunkWriter()
    writer.add_batch([1], [10], None)
    writer.add_batch([2], [20], None)
    (batch,) = read_chunk(writer.take())
    assert (batch.values, list(batch.timestamps)) == ([1, 2], [10, 20])


def test_batches_with_and_without_timestamps_stay_apart():
    writer = ChunkWriter()
    writer.add_batch([1], [10], None)
    writer.add_batch([2], None, None)
    assert [event.values for event in read_chunk(writer.take())] == [[1], [2]]


def test_size_counts_records_and_starts_over():
    writer = ChunkWriter()
    writer.add_batch([1, 2], None, None)
    writer.add_watermark(5)
    writer.add_batch([3], None, None)
    assert writer.size == 3
    writer.take()
    assert writer.size == 0


def test_lists_handed_in_are_not_changed():
    """The same lists go to every receiver of an operator."""
    content, timestamps = [1], [10]
    writer = ChunkWriter()
    writer.add_batch(content, timestamps, None)
    writer.add_batch([2], [20], None)
    assert (content, timestamps) == ([1], [10])


def test_key_that_is_part_of_its_value_is_written_once():
    words = [f"word number {number} of many" for number in range(1000)]
    with_keys, without = ChunkWriter(), ChunkWriter()
    with_keys.add_batch([(word, 1) for word in words], None, words)
    without.add_batch([(word, 1) for word in words], None, None)
    assert len(with_keys.take()) < 1.3 * len(without.take())


def test_values_of_local_classes_can_be_sent():
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    assert pickle.loads(encode(Local(7))).number == 7
    assert pickle.loads(encode_in_driver([Local(7)]))[0].number == 7


def test_functions_can_be_sent_from_the_driver():
    factor = 3
    assert pickle.loads(encode_in_driver(lambda value: value * factor))(2) == 6


# --- bounds ----------------------------------------------------------------------------------------------------------

sized_batches = st.builds(
    lambda sizes, has_times, has_keys: Batch(
        [bytes(size) for size in sizes],
        list(range(len(sizes))) if has_times else None,
        list(map(str, sizes)) if has_keys else None,
    ),
    st.lists(st.integers(0, 50) | st.integers(0, 5000), min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
)
sized_events = st.lists(sized_batches | times.map(Watermark) | st.booleans().map(Status), max_size=8)


@given(sized_events)
@settings(deadline=None)
def test_no_chunk_is_larger_than_the_bound_unless_it_is_one_record(written):
    writer = ChunkWriter()
    for event in written:
        write(writer, event)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "CHUNK_BYTES", 1000)
        chunks = list(writer.take_chunks())
    read = [list(read_chunk(each)) for each in chunks]
    for each, inside in zip(chunks, read, strict=True):
        records = sum(len(event.values) for event in inside if isinstance(event, Batch))
        assert len(each) <= 1000 or records == len(inside) == 1
    assert flat(event for inside in read for event in inside) == flat(written)
    assert writer.size == writer.bytes == 0 and list(writer.take_chunks()) == []


def test_small_records_make_one_chunk():
    writer = ChunkWriter()
    writer.add_batch([("word", number) for number in range(chunk.CHUNK_RECORDS)], None, None)
    assert writer.is_full
    assert len(list(writer.take_chunks())) == 1


def test_large_records_fill_a_chunk_before_it_has_many_records():
    writer = ChunkWriter()
    writer.add_batch([(number, bytes(60_000)) for number in range(100)], None, None)
    assert writer.is_full
    chunks = list(writer.take_chunks())
    assert len(chunks) == 2 and max(map(len, chunks)) <= chunk.CHUNK_BYTES


def test_a_record_of_100_megabytes_has_a_chunk_of_its_own():
    writer = ChunkWriter()
    writer.add_batch([b"before", bytes(100_000_000), b"after"], None, None)
    found = [[len(value) for event in read_chunk(each) for value in event.values] for each in writer.take_chunks()]
    assert [length for lengths in found for length in lengths] == [6, 100_000_000, 5]
    assert [100_000_000] in found


def test_a_record_that_cannot_be_sent_says_so(monkeypatch):
    monkeypatch.setattr(chunk, "MOST_BYTES", 10_000)
    writer = ChunkWriter()
    writer.add_batch([bytes(20_000)], None, None)
    with pytest.raises(InvalidProgramError, match=r"a record takes 20,\d+ bytes, but at most 10,000 can be sent"):
        list(writer.take_chunks())


def shown(row):
    """All that a row consists of."""
    return type(row), row._fields, row._values, row._row_kind


class OwnRow(Row):
    pass


rows = st.one_of(
    st.builds(Row, st.integers(), st.text(max_size=3)),
    st.builds(Row, a=st.integers(), b=st.none() | st.text(max_size=3)),
    st.builds(lambda kind, item: Row.of_kind(kind, item), st.sampled_from(list(RowKind)), st.integers()),
    st.builds(lambda item: Row(Row(item), [Row(a=item)]), st.integers()),
    st.builds(OwnRow, st.integers()),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(rows, min_size=1, max_size=5) | st.lists(st.builds(Row, a=st.integers()), min_size=1)))
def test_rows_arrive_as_they_were_sent(batches):
    writer = ChunkWriter()
    for batch in batches:
        writer.add_batch(batch, None, None)
    sent = [row for batch in batches for row in batch]
    before = [shown(row) for row in sent]
    chunk_of_rows = writer.take()
    found = [row for event in (read_chunk(chunk_of_rows) if chunk_of_rows else ()) for row in event.values]
    assert [shown(row) for row in found] == before == [shown(row) for row in sent]


def test_rows_of_one_shape_are_pickled_without_a_call_for_each(monkeypatch):
    monkeypatch.setattr(Row, "__reduce__", None)
    writer = ChunkWriter()
    writer.add_batch([Row(a=number, b="x") for number in range(10)], [1] * 10, list(range(10)))
    [batch] = read_chunk(writer.take())
    assert batch == Batch([Row(a=number, b="x") for number in range(10)], array("q", [1] * 10), list(range(10)))
    batch.values[0][0] = 5
    batch.values[0].set_field_names(["c", "d"])
    assert batch.values[1] == Row(a=1, b="x")
