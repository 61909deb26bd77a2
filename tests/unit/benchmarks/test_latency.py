from __future__ import annotations

import pytest
from benchmarks.epoch_spans import EPOCH, MESSAGES, METADATA, PLAIN, WAITING, WITH_CHECKPOINT, Span, breakdown
from benchmarks.growth import Cost, Growth
from benchmarks.latency import Ledger, latency_of, result_in


def test_a_count_is_the_result_of_all_records_of_its_key_up_to_it():
    ledger = Ledger()
    for at in (1.0, 2.0, 3.0):
        ledger.sent("a", at)
    ledger.sent("b", 3.5)
    ledger.seen("a", 2, 5.0)
    assert ledger.latencies == [(1.0, 4.0), (2.0, 3.0)]
    assert ledger.oldest() == 3.0


def test_only_records_sent_in_the_measured_time_count():
    ledger = Ledger()
    for at in (1.0, 2.0, 3.0):
        ledger.sent("a", at)
    ledger.seen("a", 3, 4.0)
    assert ledger.between(2.0, 3.0) == [2.0]


@pytest.mark.parametrize("line", ["RESULT key-1 12", "2> RESULT key-1 12", "|key-1|   12|"])
def test_results_are_found_in_what_each_system_prints(line):
    assert result_in(line) == ("key-1", 12)


@pytest.mark.parametrize("line", ["|value|count|", "Batch: 3", "+-----+-----+", ""])
def test_other_lines_hold_no_result(line):
    assert result_in(line) is None


def test_median_and_percentile_are_in_milliseconds():
    found = latency_of("x", [number / 1000 for number in range(1, 101)], 1.5)
    assert (found.records, found.median_ms, found.p95_ms, found.most_ms) == (100, 50.5, 96.0, 100.0)


def test_every_moment_of_an_epoch_counts_for_its_deepest_phase():
    ms = 1_000_000
    spans = [
        Span(EPOCH, 0, 10 * ms),
        Span(EPOCH, 20 * ms, 120 * ms),
        Span(MESSAGES, 30 * ms, 110 * ms),
        Span("operators", 50 * ms, 70 * ms),
        Span("operators", 60 * ms, 80 * ms),  # Of another slot at the same time.
    ]
    found = breakdown(spans)[PLAIN]
    assert (found["operators"], found[MESSAGES], found[EPOCH]) == (30.0, 50.0, 20.0)
    assert (found["an epoch"], found[WAITING], found["epochs"]) == (100.0, 10.0, 1.0)


def test_epochs_with_a_checkpoint_are_told_apart():
    spans = [Span(EPOCH, 0, 1), Span(EPOCH, 1, 2), Span(EPOCH, 2, 10), Span(METADATA, 4, 5)]
    found = breakdown(spans)
    assert {kind: times["epochs"] for kind, times in found.items()} == {PLAIN: 1.0, WITH_CHECKPOINT: 1.0}


@pytest.mark.parametrize(
    ("wall_us", "cpu_us", "is_flat"), [(1.3, 1.0, True), (1.4, 1.0, False), (1.0, 1.4, False), (1.0, None, True)]
)
def test_growth_is_flat_if_neither_wall_nor_cpu_time_grows(wall_us, cpu_us, is_flat):
    base = Cost(1.0, None if cpu_us is None else 1.0)
    assert Growth("keys", 1, 10, base, Cost(wall_us, cpu_us), "").is_flat is is_flat
