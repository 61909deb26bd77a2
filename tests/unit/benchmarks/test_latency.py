from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from benchmarks.epoch_spans import (
    EPOCH,
    FOLDER,
    MESSAGES,
    METADATA,
    PLAIN,
    WAITING,
    WITH_CHECKPOINT,
    Span,
    breakdown,
    epoch_times_ms,
    read_spans,
)
from benchmarks.growth import Cost, Growth
from benchmarks.latency import RESTARTING, ROWS, _configured, penstock_row, render, tried
from benchmarks.latency_run import Ledger, Restarts, Row, SteadyRun, latency_of, result_in
from benchmarks.peers import installation
from benchmarks.peers.installation import ROOT, PeerUnavailableError


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


def test_median_and_percentiles_are_in_milliseconds():
    found = latency_of("x", 100, [number / 1000 for number in range(1, 201)], 1.5)
    assert (found.records, found.median_ms, found.p95_ms, found.p99_ms) == (200, 100.5, 191.0, 199.0)
    assert found.most_ms == 200.0


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


COUNTING = """
import collections, socket, sys
port, counts = int(sys.argv[1].partition("=")[2]), collections.Counter()
while True:
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile() as lines:
        for word in map(str.strip, lines):
            if word.startswith("poison:"):
                break
            counts[word] += 1
            print("RESULT", word, counts[word], flush=True)
        else:
            break
"""
COUNTER = Row("a counter", lambda port: [sys.executable, "-c", COUNTING, f"--port={port}"])
INLINE = ["--config=execution.target=inline"]


def test_every_record_that_was_due_in_the_measured_time_is_measured():
    found = SteadyRun(COUNTER, rate=2_000, timeout=300).measure(warm_up=0.01, seconds=0.1)
    assert (found.system, found.rate, found.records) == ("a counter", 2_000, pytest.approx(200, abs=1))
    assert 0 < found.median_ms <= found.p95_ms <= found.p99_ms <= found.most_ms


def test_a_program_that_ends_at_once_is_left_out_with_its_last_words():
    failing = Row("a failure", lambda port: [sys.executable, "-c", "import sys; sys.exit('no Java here')"])
    with pytest.raises(PeerUnavailableError, match=r"it did not ask for its input.*no Java here"):
        SteadyRun(failing, rate=100, timeout=300).measure(0, 0)


@pytest.mark.parametrize("row", [COUNTER, penstock_row(1, *INLINE, *_configured(RESTARTING))], ids=["fake", "penstock"])
def test_restarts_are_timed_from_the_record_that_fails_to_a_result_of_a_later_one(row):
    times = Restarts(row, timeout=300).measure(failures=2)
    assert len(times) == 2 and all(seconds > 0 for seconds in times)


def test_epochs_are_timed_that_began_in_the_last_seconds():
    second = 1_000_000_000
    spans = [Span(EPOCH, 0, second), Span("operators", second, 2 * second), Span(EPOCH, 8 * second, 10 * second)]
    assert epoch_times_ms(spans, 5) == [2_000.0]


@pytest.mark.parametrize("argument", ["--epochs", "--spans"])
def test_the_penstock_job_reports_when_its_epochs_ran(tmp_path, argument):
    SteadyRun(penstock_row(1, *INLINE, f"{argument}={tmp_path}"), rate=100, timeout=300).measure(0, 0.1)
    assert epoch_times_ms(read_spans(tmp_path), 60)


def test_the_side_of_workers_can_be_watched(tmp_path):
    code = "from benchmarks.epoch_spans import watch_workers; watch_workers()"
    environment = {**os.environ, FOLDER: str(tmp_path), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_row_of_pyflink_that_is_not_installed_is_left_out_with_one_line(monkeypatch, tmp_path):
    monkeypatch.delenv(installation.PYFLINK_PYTHON, raising=False)
    monkeypatch.setattr(installation, "BENCH", tmp_path)
    notes: list[str] = []
    assert tried("pyflink", lambda: SteadyRun(ROWS["pyflink-10ms"], 100, 1).measure(0, 0), notes) == []
    assert len(notes) == 1 and notes[0].startswith(
        "pyflink is left out: PyFlink is not installed in .bench/pyflink; set"
    )


def test_the_latency_table_has_a_line_for_each_system_and_rate_with_ratios_within_a_rate():
    medians = {"a": 0.002, "b": 0.006}
    systems = [latency_of(name, rate, [medians[name]], 1.0, 20.0) for rate in (100, 10_000) for name in medians]
    lines = [re.split("  +", line) for line in render(systems).splitlines()[3:]]
    assert [(line[0], line[1], line[3]) for line in lines] == [
        ("a", "100", "1.00"), ("b", "100", "3.00"), ("a", "10,000", "1.00"), ("b", "10,000", "3.00"),
    ]  # fmt: skip
