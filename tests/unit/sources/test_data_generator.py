"""DataGeneratorSource, and how quickly it goes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_job import SourceJob

from penstock.datastream.connectors.data_generator import (
    DataGeneratorSource,
    GeneratorFunction,
    PerSecond,
    RateLimiterStrategy,
)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_all_numbers_become_elements(parallelism):
    job = SourceJob(DataGeneratorSource(lambda number: number * 10, 7), parallelism).to_the_end()
    assert sorted(job.values) == [0, 10, 20, 30, 40, 50, 60]


def test_no_elements_at_all():
    assert SourceJob(DataGeneratorSource(str, 0), 2).to_the_end().values == []


def test_restored_at_other_parallelisms_every_number_comes_once():
    job = SourceJob(DataGeneratorSource(int, 100), 1, settings={"penstock.epoch.max-records": "10"})
    for parallelism in (3, 2):
        job.epoch().epoch().epoch(is_checkpoint=False).fail().epoch().crash(parallelism)
    assert sorted(job.to_the_end().values) == list(range(100))


def test_endless_source_continues_where_it_stood():
    job = SourceJob(DataGeneratorSource(int), 2, settings={"penstock.epoch.max-records": "5"})
    while len(job.shown) < 40:
        job.wait_for_work()
        job.epoch()
        if len(job.shown) == 20:
            job.crash(3)
    job.close()
    assert len(set(job.values)) == len(job.values)


class Opened(GeneratorFunction):
    def open(self, reader_context):
        self.subtask = reader_context.get_index_of_subtask()

    def map(self, value):
        return self.subtask, value


def test_generator_function_knows_its_reader():
    assert SourceJob(DataGeneratorSource(Opened(), 2)).to_the_end().values == [(0, 0), (0, 1)]


def test_every_subtask_opens_a_generator_function_of_its_own():
    values = SourceJob(DataGeneratorSource(Opened(), 3), parallelism=3).to_the_end().values
    assert sorted(subtask for subtask, _ in values) == [0, 1, 2]


def test_rate_by_the_clock_of_the_job():
    source = DataGeneratorSource(int, None, RateLimiterStrategy.per_second(10))
    job = SourceJob(source, parallelism=2)
    for _ in range(6):
        job.now_ms += 1000
        job.epoch()
    # The readers began with the second epoch at the earliest, and wait in turns.
    assert 30 <= len(job.shown) <= 50
    assert job.now_ms < job.wake_up_ms <= job.now_ms + 200
    job.close()


def test_rate_holds_although_the_readers_are_rebuilt_for_every_epoch():
    job = SourceJob(DataGeneratorSource(int, None, RateLimiterStrategy.per_second(20)))
    for _ in range(20):
        job.now_ms += 100
        job.epoch().rebuild()
    assert 30 <= len(job.shown) <= 40
    job.close()


@settings(max_examples=15)
@given(parallelisms=st.lists(st.integers(1, 4), min_size=1, max_size=4), count=st.sampled_from([None, 2, 10**6]))
def test_rate_is_that_of_all_subtasks_together_however_often_the_job_is_rescaled(parallelisms, count):
    job = SourceJob(DataGeneratorSource(int, count, RateLimiterStrategy.per_second(60)), parallelisms[0])
    for parallelism in parallelisms:
        job.crash(parallelism)
        job.epoch().epoch()
        before = len(job.shown)
        for _ in range(20):
            job.now_ms += 100
            job.epoch()
        if count is None or count > 2:
            assert len(job.shown) - before == pytest.approx(120, abs=4)
    assert len(set(job.values)) == len(job.values)
    job.close()


def test_no_split_of_an_endless_source_waits_for_another_one_to_end():
    job = SourceJob(DataGeneratorSource(int), 3, settings={"penstock.epoch.max-records": "10"})
    job.epoch().epoch().crash(1)
    for _ in range(10):
        job.epoch()
    assert {value % 3 for value in job.values[-60:]} == {0, 1, 2}
    job.close()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_share_that_was_read_is_not_known_of_an_endless_source(parallelism):
    job = SourceJob(DataGeneratorSource(int), settings={"penstock.epoch.max-records": "10"})
    assert job.coordinator.share_read() is None
    job.epoch().epoch().crash(parallelism)
    for _ in range(3):
        assert job.coordinator.share_read() is None
        job.epoch()
    job.close()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_restored_bounded_source_is_not_done_before_its_last_split(parallelism):
    job = SourceJob(DataGeneratorSource(int, 100), 2, settings={"penstock.epoch.max-records": "10"})
    job.epoch().epoch().crash(parallelism)
    while len(job.shown) < 90:
        share = job.coordinator.share_read()
        assert share is not None and share < 1
        job.epoch()
    assert len(set(job.to_the_end().values)) == 100
    assert job.coordinator.share_read() == 1


@given(rate=st.floats(0.1, 5000), steps=st.lists(st.integers(0, 400), max_size=50))
def test_no_more_is_granted_than_was_earned(rate, steps):
    limiter = PerSecond(rate)
    now_ms = granted = 0
    limiter.permits(now_ms, 10**6)
    for step in steps:
        now_ms += step
        granted += limiter.permits(now_ms, 10**6)
        assert granted <= now_ms * rate / 1000 + 1e-6
    assert granted >= now_ms * rate / 1000 - 1 or now_ms > 400


def test_waiting_as_long_as_it_says_is_enough_for_one_element():
    for rate in (0.3, 7, 999):
        limiter = PerSecond(rate)
        limiter.permits(0, 1)
        now_ms = limiter.next_time(0, 200)
        assert limiter.permits(now_ms + 1, 1) == 1


def test_so_many_between_two_checkpoints():
    job = SourceJob(DataGeneratorSource(int, None, RateLimiterStrategy.per_checkpoint(4)))
    while len(job.unseen) < 4:
        job.epoch(is_checkpoint=False)
    job.epoch(is_checkpoint=False).epoch(is_checkpoint=False)
    assert len(job.unseen) == 4
    job.epoch()
    assert len(job.shown) == 4
    job.epoch(is_checkpoint=False)
    assert len(job.unseen) == 4
    job.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataGeneratorSource("no function"), "needs a function"),
        (lambda: DataGeneratorSource(int, -1), "count cannot be negative, got -1"),
        (lambda: RateLimiterStrategy.per_second(0), "the rate must be positive, got 0"),
        (lambda: RateLimiterStrategy.per_checkpoint(-2), "the number must be positive, got -2"),
    ],
)
def test_nonsense_is_refused_where_it_is_written(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
