"""The benchmarks' programs are right: a fast wrong answer is no benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.job import Setting, arguments_of, digest_of, measure, parse_setting, results_of, run
from benchmarks.programs import NAMES, module_of, right_answer

INLINE = {"execution.target": "inline"}
SMALL = Setting(2_000, 2, keys=50, config=INLINE)


def comparable(name: str, results: list[Any]) -> list[Any]:
    """What must be the same in every run."""
    module = module_of(name)
    return module.comparable(results) if hasattr(module, "comparable") else results


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_gives_the_answer_of_plain_python(name: str, parallelism: int) -> None:
    setting = replace(SMALL, parallelism=parallelism)
    results = comparable(name, results_of(module_of(name).build, setting))
    assert sorted(results) == sorted(module_of(name).expected(setting)) != []


@pytest.mark.parametrize("name", ["session_windows", "connected_join", "interval_join", "nexmark.q8", "nexmark.q11"])
def test_answers_are_right_over_several_windows_too(name: str) -> None:
    setting = replace(SMALL, records=15_000)
    assert sorted(results_of(module_of(name).build, setting)) == sorted(module_of(name).expected(setting))


@pytest.mark.parametrize("name", ["word_count", "sliding_windows"])
def test_keys_may_be_even(name: str) -> None:
    setting = replace(SMALL, has_skew=False)
    results = results_of(module_of(name).build, setting)
    assert sorted(results) == sorted(module_of(name).expected(setting))
    assert right_answer(name, setting) != right_answer(name, SMALL)


def test_both_joins_find_the_same() -> None:
    by_hand, built_in = (results_of(module_of(name).build, SMALL) for name in ("connected_join", "interval_join"))
    assert sorted(by_hand) == sorted(built_in)


def test_a_run_tells_what_went_from_stage_to_stage() -> None:
    keyed, fewer_records = (run(module_of("keyed_count").build, replace(SMALL, records=n))[1] for n in (2_000, 200))
    assert keyed is not None and fewer_records is not None
    assert keyed > 5 * fewer_records > 0


@pytest.mark.parametrize(("name", "parallelism"), [("stateless_chain", 2), ("keyed_count", 1)])
def test_a_job_that_spark_runs_as_one_stage_shuffles_nothing(name: str, parallelism: int) -> None:
    assert run(module_of(name).build, replace(SMALL, parallelism=parallelism))[1] == 0


def test_a_measurement_holds_the_digest_of_what_does_not_depend_on_the_clock() -> None:
    q12 = module_of("nexmark.q12")
    found = measure(q12.build, SMALL, q12.comparable)
    assert (found.records, found.digest) == (2_000, right_answer("nexmark.q12", SMALL).digest)


def test_digest_does_not_depend_on_the_order_of_results() -> None:
    assert digest_of([("a", 1), ("b", 2)]) == digest_of([["b", 2], ["a", 1]])
    assert digest_of([("a", 1), ("b", 2)]) != digest_of([("a", 1), ("b", 3)])


def test_a_setting_survives_the_command_line() -> None:
    setting = Setting(5, 3, 7, has_skew=False, config={"execution.target": "inline", "pipeline.name": "a=b"})
    assert parse_setting(arguments_of(setting)) == setting
