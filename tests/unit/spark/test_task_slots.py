"""Who gets how many of the tasks that Spark can run at once."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.cores import cores_of
from penstock.jobmaster.execution.slots import NoResourceAvailableError
from penstock.spark.spark_settings import CORES
from penstock.spark.task_slots import SlotLedger

SOON_MS = 30_000


def ledger_of(total: int, **settings: str) -> SlotLedger:
    return SlotLedger(lambda: total, {key.replace("_", "."): value for key, value in settings.items()}, settled_s=0)


def take(ledger: SlotLedger, wanted: int, regions: int = 1, spare: int = 0, timeout_ms: int = SOON_MS) -> int:
    return ledger.take(wanted, regions, spare, timeout_ms, lambda: False, "job")


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[4]", 4),
        ("local[*]", 8),
        ("local[4,2]", 4),
        ("local[*, 3]", 8),
        ("yarn", None),
        ("spark://host:7077", None),
        ("local-cluster[2,1,1024]", None),
    ],
)
def test_cores_of_a_master(master, cores):
    assert cores_of(master, of_machine=8) == cores


def test_no_more_workers_than_subtasks_slots_or_cores():
    assert take(ledger_of(8), 3) == 3
    assert take(ledger_of(2), 128) == 2
    assert take(SlotLedger(lambda: 32, {CORES: "2"}), 128) == 2


def test_regions_of_a_job_share_what_is_there():
    ledger = ledger_of(4)
    assert [take(ledger, 4, regions) for regions in (3, 2, 1)] == [1, 1, 2]


def test_slot_stays_free_for_jobs_with_data_frames():
    assert take(ledger_of(4), 4, spare=1) == 3


@given(total=st.integers(1, 6), asked=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=10))
def test_never_more_slots_are_taken_than_there_are(total, asked):
    ledger, held = ledger_of(total), []
    for wanted, ends in asked:
        if ends and held:
            ledger.give_back(held.pop())
        if sum(held) < total:
            held.append(take(ledger, wanted))
            assert 1 <= held[-1] <= wanted
        else:
            with pytest.raises(NoResourceAvailableError):
                take(ledger, wanted, timeout_ms=0)
        assert sum(held) <= total


def test_too_few_slots_are_reported_with_required_and_available():
    ledger = ledger_of(1)
    told = r"'job' could not acquire .* within 0 ms: required 2 \(one of them for DataFrames\), available 1 of 1 tasks"
    with pytest.raises(NoResourceAvailableError, match=told):
        take(ledger, 1, spare=1, timeout_ms=0)
    take(ledger, 1)
    with pytest.raises(NoResourceAvailableError, match="required 1, available 0 of 1 tasks"):
        take(ledger, 1, timeout_ms=0)


def test_who_waits_gets_what_another_one_gives_back():
    ledger = ledger_of(1)
    held = take(ledger, 1)
    got: list[int] = []
    waiting = threading.Thread(target=lambda: got.append(take(ledger, 5)))
    waiting.start()
    ledger.give_back(held)
    waiting.join(30)
    assert got == [1]


def test_who_gives_up_gets_nothing():
    ledger = ledger_of(1)
    take(ledger, 1)
    assert ledger.take(1, 1, 0, SOON_MS, lambda: True, "job") == 0


def test_who_gives_up_does_not_wait_for_executors():
    ledger = SlotLedger(lambda: 0, {}, settled_s=SOON_MS)
    assert ledger.take(1, 1, 0, SOON_MS, lambda: True, "job") == 0


def test_several_at_a_time_take_no_slot_twice():
    ledger, held, refused = ledger_of(4), [], []
    start = threading.Barrier(8)

    def take_one() -> None:
        start.wait()
        try:
            held.append(take(ledger, 1, timeout_ms=0))
        except NoResourceAvailableError as error:
            refused.append(error)

    threads = [threading.Thread(target=take_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (sum(held), len(refused), ledger.is_overdrawn()) == (4, 4, False)


def test_more_is_taken_than_there_is_when_executors_are_lost():
    totals = iter([4, 4])
    ledger = SlotLedger(lambda: next(totals, 2), {}, settled_s=0)
    take(ledger, 4)
    assert ledger.is_overdrawn()


def test_executors_that_come_late_are_waited_for():
    totals = iter([0, 0, 1, 2])
    ledger = SlotLedger(lambda: next(totals, 2), {}, settled_s=SOON_MS)
    assert take(ledger, 2) == 2


def test_with_dynamic_allocation_workers_are_not_limited_by_what_is_there_now():
    settings = {"spark.dynamicAllocation.enabled": "true"}
    assert take(SlotLedger(lambda: 0, settings), 16) == 16
    limited = {**settings, "spark.dynamicAllocation.maxExecutors": "3", "spark.executor.cores": "2"}
    assert take(SlotLedger(lambda: 0, limited), 16) == 6


def test_regions_and_jobs_share_what_dynamic_allocation_can_give():
    settings = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "4"}
    ledger = SlotLedger(lambda: 0, settings)
    assert [take(ledger, 4, regions) for regions in (2, 1)] == [2, 2]
    with pytest.raises(NoResourceAvailableError, match="required 1, available 0 of 4"):
        take(ledger, 4, timeout_ms=0)
