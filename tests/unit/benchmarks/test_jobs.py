"""The benchmarks' programs are right: a fast wrong answer is no benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.job import Setting, arguments_of, digest_of, measure, parse_setting, results_of, run
from benchmarks.peers import installation
from benchmarks.peers.python_loops import RUNS as LOOPS
from benchmarks.programs import NAMES, PROGRAMS, module_of, right_answer, run_in_process
from benchmarks.systems import PYTHON_LOOP_BENCHMARKS

INLINE = {"execution.target": "inline"}
SMALL = Setting(2_000, 2, keys=50, config=INLINE)
WITHOUT_SERVERS = [name for name in NAMES if not PROGRAMS[name].needs_broker]


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Inputs of programs that read files lie in a folder of the test."""
    monkeypatch.setattr(installation, "BENCH", tmp_path / ".bench")


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("name", WITHOUT_SERVERS)
def test_every_benchmark_gives_the_answer_of_plain_python(name: str, parallelism: int) -> None:
    setting = replace(SMALL, parallelism=parallelism)
    assert sorted(run_in_process(name, setting)) == sorted(module_of(name).expected(setting)) != []


@pytest.mark.parametrize("name", [name for name in PYTHON_LOOP_BENCHMARKS if name in WITHOUT_SERVERS])
def test_over_several_windows_a_program_gives_what_the_hand_fused_loop_gives(name: str) -> None:
    setting = replace(SMALL, records={"files.text": 110_000, "wide_records": 3_000}.get(name, 15_000))
    ours = run_in_process(name, setting)
    by_loop = list(LOOPS[name](setting)[0])
    assert sorted(ours) == sorted(by_loop) != []


@pytest.mark.parametrize("name", ["word_count", "sliding_windows", "files.text"])
def test_keys_may_be_even(name: str) -> None:
    setting = replace(SMALL, has_skew=False)
    assert sorted(run_in_process(name, setting)) == sorted(module_of(name).expected(setting))
    assert right_answer(name, setting) != right_answer(name, SMALL)


def test_both_joins_find_the_same() -> None:
    by_hand, built_in = (results_of(module_of(name).build, SMALL) for name in ("connected_join", "interval_join"))
    assert sorted(by_hand) == sorted(built_in)


def test_a_run_reports_what_went_from_stage_to_stage() -> None:
    keyed, fewer_records = (run(module_of("keyed_count").build, replace(SMALL, records=n))[1] for n in (2_000, 200))
    assert keyed is not None and fewer_records is not None
    assert keyed > 5 * fewer_records > 0


@pytest.mark.parametrize(("name", "parallelism"), [("stateless_chain", 2), ("keyed_count", 1)])
def test_a_job_that_spark_runs_as_one_stage_shuffles_nothing(name: str, parallelism: int) -> None:
    assert run(module_of(name).build, replace(SMALL, parallelism=parallelism))[1] == 0


def test_a_measurement_holds_the_digest_of_what_does_not_depend_on_the_clock() -> None:
    q12 = module_of("nexmark.q12")
    found = measure(q12.build, replace(SMALL, repeats=2), q12.comparable)
    right = right_answer("nexmark.q12", SMALL).digest
    assert [(each.records, each.digest) for each in found] == [(2_000, right), (2_000, right)]


def test_digest_does_not_depend_on_the_order_of_results() -> None:
    assert digest_of([("a", 1), ("b", 2)]) == digest_of([["b", 2], ["a", 1]])
    assert digest_of([("a", 1), ("b", 2)]) != digest_of([("a", 1), ("b", 3)])


def test_a_setting_survives_the_command_line() -> None:
    setting = Setting(5, 3, 7, has_skew=False, config={"execution.target": "inline", "pipeline.name": "a=b"}, repeats=3)
    assert parse_setting(arguments_of(setting)) == setting
