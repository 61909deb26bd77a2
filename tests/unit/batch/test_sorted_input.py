from __future__ import annotations

from collections import Counter
from itertools import pairwise
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime import sorted_input
from penstock.runtime.batch import Batch
from penstock.runtime.sorted_input import SortedInput, several_keys_at_once

keys = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from([1.0, "a", "b", ""]), st.tuples(st.integers(0, 40)))
elements = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers(-5, 5)), st.integers(0, 1)), max_size=60)


def sorted_parts(rows, spill_bytes):
    gathered = SortedInput((lambda v: v[0], lambda v: v[0]), spill_bytes)
    for at, (key, timestamp, input_index) in enumerate(rows):
        gathered.add(Batch([(key, at)], None if timestamp is None else [timestamp], [key]), input_index)
        gathered.grew_by(10)
    return list(gathered.parts())


@given(rows=elements, spill_bytes=st.sampled_from([10, 35, 1000]))
def test_every_key_comes_once_in_one_piece_and_in_order_of_time_then_arrival(rows, spill_bytes):
    parts = sorted_parts(rows, spill_bytes)
    ended = [part.key for part in parts if part.is_last]
    assert Counter(ended) == Counter(dict.fromkeys((key for key, _, _ in rows), 1))
    seen = []
    for part in parts:
        assert part.batch.keys == [part.key] * len(part.batch.values)
        timestamps = part.batch.timestamps or [None] * len(part.batch.values)
        seen += [(part.key, t, part.input_index, v[1]) for v, t in zip(part.batch.values, timestamps, strict=True)]
    assert sorted(at for *_, at in seen) == list(range(len(rows)))
    assert all(rows[at][1:] == (timestamp, input_index) for _, timestamp, input_index, at in seen)
    for key in set(ended):
        times = [(-99 if t is None else t, at) for k, t, _, at in seen if k == key]
        assert times == sorted(times)
    order = [key for key, *_ in seen]
    changes = sum(a != b for a, b in pairwise(order))
    assert changes == max(0, len(set(order)) - 1)


@given(rows=elements)
def test_spilling_to_disk_changes_nothing(rows):
    assert sorted_parts(rows, 10) == sorted_parts(rows, 10**9)


@given(rows=elements, records=st.integers(1, 10))
def test_small_keys_may_come_together_but_a_key_is_never_split_by_an_end(rows, records):
    rows = [(key, timestamp, 0) for key, timestamp, _ in rows]
    with mock.patch.object(sorted_input, "BATCH_RECORDS", records):
        alone = sorted_parts(rows, 1000)
        together = list(several_keys_at_once(alone))
    assert [value for part in together for value in part.batch.values] == [v for p in alone for v in p.batch.values]
    ended: set = set()
    so_far: set = set()
    for part in together:
        assert part.batch.keys == [key for key, _ in part.batch.values]
        assert not ended & set(part.batch.keys)
        so_far |= set(part.batch.keys)
        if part.is_last:
            ended, so_far = ended | so_far, set()
    assert so_far == set()


def test_keys_with_the_same_hash_are_told_apart():
    # In CPython -1 and -2 have the same hash.
    parts = sorted_parts([(-1, None, 0), (-2, None, 0), (-1, None, 0)], 1000)
    assert [(part.key, [at for _, at in part.batch.values], part.is_last) for part in parts] == [
        (-1, [0, 2], True),
        (-2, [1], True),
    ]


def test_the_elements_of_both_inputs_of_a_key_are_mixed_by_time():
    parts = sorted_parts([("a", 5, 0), ("a", 1, 1), ("a", 3, 0), ("a", 4, 1)], 1000)
    assert [(part.input_index, list(part.batch.timestamps or ())) for part in parts] == [
        (1, [1]), (0, [3]), (1, [4]), (0, [5]),
    ]  # fmt: skip
    assert [part.is_last for part in parts] == [False, False, False, True]
