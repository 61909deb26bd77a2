"""SimpleSource: every record once and in the order of its split, whatever fails and however the parallelism changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_by_copies import SharedByCopies
from source_job import SourceJob

from penstock.common.exceptions import InvalidProgramError, UserFunctionError
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import Boundedness


class Lists(SimpleSource):
    """Lists of the numbers 0, 1, 2 and so on, by name."""

    def __init__(self, lengths):
        super().__init__()
        self.lengths = lengths

    def splits(self):
        return list(self.lengths)

    def read(self, split, offset):
        for number in range(offset or 0, self.lengths[split]):
            yield number + 1, (split, number)


class InTurns(Lists):
    reads_in_turns = True


class Growing(Lists):
    """Lists that become longer while they are read, and to which others are added."""

    discovery_interval_ms = 1

    def __init__(self, lengths):
        super().__init__(SharedLengths(lengths))

    def get_boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED


class SharedLengths(SharedByCopies, dict):
    pass


def by_split(values):
    found = {}
    for split, number in values:
        found.setdefault(split, []).append(number)
    return found


def few_at_once(records):
    return {"penstock.epoch.max-records": str(records)}


# --- bounded ---------------------------------------------------------------------------------------------------------


def test_every_split_is_read_to_its_end_and_the_source_ends():
    job = SourceJob(Lists({"a": 3, "b": 0, "c": 2}), parallelism=2).to_the_end()
    assert by_split(job.values) == {"a": [0, 1, 2], "c": [0, 1]}
    assert all(subtask.is_finished for subtask in job.subtasks)


def test_source_without_splits_ends_at_once():
    assert SourceJob(Lists({}), parallelism=3).to_the_end().values == []


def test_splits_are_read_in_turns_or_one_after_the_other():
    names = [split for split, _ in SourceJob(Lists({"a": 1500, "b": 1500})).to_the_end().values]
    assert names == ["a"] * 1500 + ["b"] * 1500
    names = [split for split, _ in SourceJob(InTurns({"a": 1500, "b": 1500})).to_the_end().values]
    assert names != sorted(names)


def test_an_epoch_reads_no_more_than_it_may():
    job = SourceJob(Lists({"a": 100}), settings=few_at_once(7))
    while not job.shown:
        job.wait_for_work()
        job.epoch()
    assert len(job.shown) == 7
    job.close()


def test_many_small_splits_need_few_epochs():
    job = SourceJob(Lists({str(number): 1 for number in range(300)})).to_the_end()
    assert len(job.values) == 300
    assert job.number < 20


actions = st.one_of(
    st.just(("epoch", True)),
    st.just(("epoch", True)),
    st.just(("epoch", False)),
    st.just(("fail", None)),
    st.just(("rebuild", None)),
    st.tuples(st.just("crash"), st.sampled_from([None, 1, 2, 3])),
)


@pytest.mark.parametrize("source", [Lists, InTurns])
@given(
    lengths=st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 9), max_size=7),
    parallelism=st.integers(1, 3),
    records=st.integers(1, 5),
    happenings=st.lists(actions, max_size=25),
)
def test_every_record_comes_once_and_in_order_whatever_happens(source, lengths, parallelism, records, happenings):
    job = SourceJob(source(lengths), parallelism, settings=few_at_once(records))
    for what, argument in happenings:
        if what == "epoch" and not job.coordinator.is_exhausted:
            job.epoch(argument)
        elif what == "fail":
            job.fail()
        elif what == "rebuild" and job.last is not None and not job.unseen and not job.coordinator.is_exhausted:
            job.rebuild()
        elif what == "crash":
            job.crash(argument)
    job.to_the_end()
    assert by_split(job.values) == {split: list(range(length)) for split, length in lengths.items() if length}


# --- unbounded -------------------------------------------------------------------------------------------------------


def read_until(job, expected):
    while len(job.shown) < expected:
        job.wait_for_work()
        job.epoch()
        job.now_ms += 1000  # The time to ask readers again that had nothing.


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_unbounded_source_finds_what_is_added_later(parallelism):
    source = Growing({"a": 2, "b": 1})
    job = SourceJob(source, parallelism)
    read_until(job, 3)
    source.lengths["a"] = 5
    source.lengths["new"] = 2
    read_until(job, 8)
    job.close()
    assert by_split(job.values) == {"a": [0, 1, 2, 3, 4], "b": [0], "new": [0, 1]}


def test_unbounded_source_continues_in_a_new_process_at_another_parallelism():
    source = Growing({"a": 2, "b": 3})
    job = SourceJob(source, 1)
    read_until(job, 5)
    source.lengths.update(a=4, c=1)
    job.crash(3)
    read_until(job, 8)
    source.lengths.update(b=4)
    job.crash(2)
    read_until(job, 9)
    job.close()
    assert by_split(job.values) == {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [0]}


class OneByOne(Growing):
    reads_in_turns = False


@pytest.mark.parametrize("parallelism", [1, 2])
def test_all_splits_of_an_unbounded_source_are_read_also_one_by_one(parallelism):
    source = OneByOne({str(number): 2 for number in range(70)})
    job = SourceJob(source, parallelism)
    read_until(job, 140)
    source.lengths["new"] = 1
    job.crash(3 - parallelism)
    read_until(job, 141)
    job.close()
    assert Counter(split for split, _ in job.values) == {**dict.fromkeys(map(str, range(70)), 2), "new": 1}


def test_idle_reader_is_asked_again_after_the_poll_interval_and_not_before():
    job = SourceJob(Growing({"a": 1}), settings={"penstock.source.idle-poll-interval": "70 ms"})
    read_until(job, 1)
    job.now_ms += 5
    job.epoch()
    assert not job.has_work()
    assert job.wake_up_ms == job.now_ms + 70
    job.close()


def test_reader_without_splits_is_not_polled_at_all():
    job = SourceJob(Growing({"a": 1}), parallelism=2)
    read_until(job, 1)
    assert [subtask.operator.next_processing_time() is None for subtask in job.subtasks] == [False, True]
    job.close()


class Pausing(Lists):
    """Says None, nothing for now, before every record."""

    def read(self, split, offset):
        for item in super().read(split, offset):
            yield None
            yield item


def test_a_split_may_have_nothing_for_now():
    job = SourceJob(Pausing({"a": 3, "b": 2}))
    while not job.coordinator.is_exhausted:
        job.wait_for_work()
        job.epoch()
        job.now_ms += 1000
    job.close()
    assert Counter(job.values) == Counter([("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)])


# --- misuse ----------------------------------------------------------------------------------------------------------


class Broken(Lists):
    def splits(self):
        raise OSError("the catalogue is away")


def test_failure_to_find_splits_names_the_source():
    job = SourceJob(Broken({}))
    with pytest.raises(UserFunctionError, match=r"'Source: the source'.*OSError: the catalogue is away"):
        job.to_the_end()
    job.close()


class Twice(Lists):
    def splits(self):
        return [1, "1"]


def test_two_splits_of_one_name_are_refused():
    job = SourceJob(Twice({}))
    with pytest.raises(UserFunctionError, match=r"'1' came 2 times"):
        job.to_the_end()
    job.close()


class WithoutOffset(Lists):
    def read(self, split, offset):
        yield "record"


def test_records_without_an_offset_are_refused():
    job = SourceJob(WithoutOffset({"a": 1}))
    with pytest.raises(InvalidProgramError, match=r"yielded 'record'; it must yield \(offset, record\)"):
        job.to_the_end()
    job.close()


class BoundedButLooking(Lists):
    discovery_interval_ms = 10


def test_a_bounded_source_does_not_look_for_more():
    with pytest.raises(UserFunctionError, match="discovery_interval_ms makes no sense"):
        SourceJob(BoundedButLooking({}))
