from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.state.entry_index import EntryIndex, Hashes

PART = 10_000


@pytest.fixture
def new_index(tmp_path_factory):
    return lambda: EntryIndex(tmp_path_factory.mktemp("index"))


def filled(index: EntryIndex, hashes: Hashes) -> EntryIndex:
    for start in range(0, len(hashes), PART):
        slots = index.place(hashes[start : start + PART])  # First: the flags are those of another file afterwards.
        index.flags[slots] = 1
    return index


def in_order_of_slots(index: EntryIndex) -> Hashes:
    return np.concatenate([index.hashes(slots) for slots in index.with_flags(lambda flags: flags != 0)])


HASHES = {
    "one after the other": np.arange(100_000),
    "with gaps": np.arange(100_000) * 4_096,
    "multiples of a large power of two": np.arange(100_000) << 40,
    "at random": np.random.default_rng(7).integers(-(2**62), 2**62, 100_000),
}


@pytest.mark.parametrize("kind", HASHES)
def test_a_free_slot_is_near_whatever_order_hashes_come_in(new_index, kind):
    hashes = HASHES[kind]
    first = filled(new_index(), hashes)
    index = new_index()
    for start in range(0, len(hashes), PART):
        part = in_order_of_slots(first)[start : start + PART]
        slots = index.place(part)
        index.flags[slots] = 1
        # In the order of their own slots, 10,000 hashes would fill the front of a table for 100,000 one by one.
        assert (slots - index._home(~part)).max() < 500
    assert (index.find(hashes) >= 0).all()


@settings(max_examples=50)
@given(
    st.sets(st.integers(-(2**63), 2**63 - 1).filter(lambda number: number != -1), min_size=1, max_size=3_000),
    st.integers(1, 2_000),
)
def test_every_hash_is_met_once_while_the_file_grows(tmp_path_factory, numbers, step):
    index = EntryIndex(tmp_path_factory.mktemp("index"))
    hashes = np.array(sorted(numbers), np.int64)
    half = len(hashes) // 2
    filled(index, hashes[:half])
    met, position = [], 0
    is_grown = False
    while position is not None:
        slots, position = index.some(position, step)
        met += index.hashes(slots).tolist()
        if not is_grown:
            filled(index, hashes[half:])
            is_grown = True
    assert len(met) == len(set(met))
    assert set(hashes[:half].tolist()) <= set(met) <= numbers
