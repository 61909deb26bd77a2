from __future__ import annotations

import re
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError
from penstock.graph import partitioners as p
from penstock.graph.partitioners import connected_downstream, connected_upstream
from penstock.runtime.key_groups import key_group_of, subtask_of_key_group
from penstock.runtime.partitioning import ByKeyGroup, build_dealer

ALL_TO_ALL = [
    p.RebalancePartitioner(),
    p.ShufflePartitioner(),
    p.BroadcastPartitioner(),
    p.GlobalPartitioner(),
    p.KeyGroupStreamPartitioner(lambda value: value),
]
targets_of = st.integers(1, 8)
batches = st.lists(st.lists(st.integers(0, 100), max_size=12), max_size=8)


def deal(dealer, values, timestamps=None) -> dict[int, list]:
    return {target: batch.values for target, batch in dealer.deal(values, timestamps)}


def deal_all(dealer, parts) -> dict[int, list]:
    """What each target got of several batches."""
    got: dict[int, list] = {}
    for values in filter(None, parts):
        for target, batch in dealer.deal(values, None):
            got.setdefault(target, []).extend(batch.values)
    return got


# --- who is connected to whom ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("senders", range(1, 9))
@pytest.mark.parametrize("receivers", range(1, 9))
def test_rescale_connects_both_sides_alike(senders, receivers):
    rescale = p.RescalePartitioner()
    down = {(s, r) for s in range(senders) for r in connected_downstream(rescale, s, senders, receivers)}
    up = {(s, r) for r in range(receivers) for s in connected_upstream(rescale, r, senders, receivers)}
    assert down == up
    assert {s for s, _ in up} == set(range(senders)), "every sender has a receiver"
    assert {r for _, r in up} == set(range(receivers)), "every receiver has a sender"
    assert len(up) == max(senders, receivers), "and no more connections than needed"


@pytest.mark.parametrize("parallelism", range(1, 9))
def test_forward_connects_equal_numbers(parallelism):
    forward = p.ForwardPartitioner()
    for subtask in range(parallelism):
        assert list(connected_downstream(forward, subtask, parallelism, parallelism)) == [subtask]
        assert list(connected_upstream(forward, subtask, parallelism, parallelism)) == [subtask]


@pytest.mark.parametrize("partitioner", ALL_TO_ALL, ids=lambda each: each.ship_strategy)
def test_other_partitioners_connect_all_to_all(partitioner):
    assert list(connected_downstream(partitioner, 1, 2, 3)) == [0, 1, 2]
    assert list(connected_upstream(partitioner, 1, 2, 3)) == [0, 1]


# --- dealing ---------------------------------------------------------------------------------------------------------


@given(batches, targets_of)
def test_round_robin_continues_across_batches(parts, targets):
    dealer = build_dealer(p.RebalancePartitioner(), targets, 128)
    records = [value for values in parts for value in values]
    expected = {target: records[target::targets] for target in range(targets) if records[target::targets]}
    assert deal_all(dealer, parts) == expected


@given(batches, batches, targets_of)
def test_round_robin_continues_in_another_process(before, after, targets):
    kept = build_dealer(p.RebalancePartitioner(), targets, 128)
    deal_all(kept, before)
    restored = build_dealer(p.RebalancePartitioner(), targets, 128)
    restored.restore(kept.memory())
    assert deal_all(restored, after) == deal_all(kept, after)


@given(st.lists(st.integers(), min_size=1), targets_of)
def test_broadcast_gives_everything_to_everyone(values, targets):
    assert deal(build_dealer(p.BroadcastPartitioner(), targets, 128), values) == dict.fromkeys(range(targets), values)


@given(st.lists(st.integers(), min_size=1), targets_of)
def test_global_gives_everything_to_the_first(values, targets):
    assert deal(build_dealer(p.GlobalPartitioner(), targets, 128), values) == {0: values}


@given(st.lists(st.integers()), targets_of)
def test_shuffle_loses_and_doubles_nothing(values, targets):
    dealt = deal(build_dealer(p.ShufflePartitioner(), targets, 128), values)
    assert sorted(value for part in dealt.values() for value in part) == sorted(values)
    assert set(dealt) <= set(range(targets))


@given(st.lists(st.text(max_size=3)), targets_of, st.sampled_from([8, 128, 200]))
def test_key_goes_to_the_owner_of_its_group_and_travels_along(words, targets, max_parallelism):
    dealer = build_dealer(p.KeyGroupStreamPartitioner(lambda pair: pair[0]), targets, max_parallelism)
    for target, batch in dealer.deal([(word, 1) for word in words], None):
        assert batch.keys == [word for word, _ in batch.values]
        groups = {key_group_of(key, max_parallelism) for key in batch.keys}
        owners = {subtask_of_key_group(group, max_parallelism, targets) for group in groups}
        assert owners <= {target}


@pytest.mark.parametrize(
    "partitioner",
    [*ALL_TO_ALL, p.RescalePartitioner(), p.CustomPartitioner(lambda key, n: key % n, lambda value: value)],
    ids=lambda each: each.ship_strategy,
)
@pytest.mark.parametrize("targets", [1, 3])
def test_timestamps_stay_with_their_records(partitioner, targets):
    dealer = build_dealer(partitioner, targets, 128)
    for _ in range(2):
        for _, batch in dealer.deal(list(range(10)), [value * 100 for value in range(10)]):
            assert list(batch.timestamps) == [value * 100 for value in batch.values]


@pytest.mark.parametrize("targets", [1, 3])
def test_a_list_is_a_key(targets):
    dealer = build_dealer(p.KeyGroupStreamPartitioner(lambda value: [value]), targets, 128)
    (first,) = dealer.deal(["x", "x"], None)
    (again,) = dealer.deal(["x"], None)
    assert first[0] == again[0] and first[1].keys == [["x"], ["x"]]


# --- custom ----------------------------------------------------------------------------------------------------------


def test_custom_partitioner_gets_key_and_number_of_targets():
    class Seen:
        calls: ClassVar[list[tuple[int, int]]] = []

    def choose(key, targets):
        Seen.calls.append((key, targets))
        return key % targets

    dealer = build_dealer(p.CustomPartitioner(choose, lambda value: value * 10), 3, 128)
    assert deal(dealer, [1, 2, 3]) == {1: [1], 2: [2], 0: [3]}
    assert Seen.calls == [(10, 3), (20, 3), (30, 3)]


@pytest.mark.parametrize("answer", [3, -1, 1.0, None, "0"])
def test_custom_partitioner_with_a_bad_answer_is_refused(answer):
    dealer = build_dealer(p.CustomPartitioner(lambda key, n: answer, lambda value: value), 3, 128)
    message = f"the custom partitioner returned {answer!r} for key 'k'; it must return a number from 0 to 2"
    with pytest.raises(InvalidProgramError, match=re.escape(message)):
        dealer.deal(["k"], None)


def test_custom_partitioner_with_one_target_is_asked_too():
    dealer = build_dealer(p.CustomPartitioner(lambda key, n: 1, lambda value: value), 1, 128)
    with pytest.raises(InvalidProgramError, match="it must return a number from 0 to 0"):
        dealer.deal(["k"], None)


def test_key_selector_is_called_where_functions_must_be_called():
    dealer = ByKeyGroup(1, 128, lambda value: value[0])
    assert dealer._item == 0 and dealer._keys_of.expression == "value[0]"
    dealer.call_functions()
    assert dealer._item is None and dealer._keys_of.expression == "f0(value)"
    assert dealer.keys_of([("a", 1), ("b", 2)]) == ["a", "b"]
