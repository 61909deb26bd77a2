"""The benchmarks' programs are right: a fast wrong answer is no benchmark."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.__main__ import NAMES
from benchmarks.job import Setting, arguments_of, digest_of, parse_setting, results_of

INLINE = {"execution.target": "inline"}


@pytest.mark.parametrize("has_skew", [True, False])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_word_count_gives_the_batch_answer(parallelism: int, has_skew: bool) -> None:
    benchmark = importlib.import_module("benchmarks.word_count")
    setting = Setting(2_000, parallelism, keys=50, has_skew=has_skew, config=INLINE)
    results = results_of(benchmark.build, setting)
    assert len(results) == 50
    assert digest_of(results) == digest_of(benchmark.expected(setting))


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_gives_the_batch_answer(name: str) -> None:
    benchmark = importlib.import_module(f"benchmarks.{name}")
    setting = Setting(12_000, 2, keys=20, config=INLINE)
    expected = benchmark.expected(setting)
    assert expected and digest_of(results_of(benchmark.build, setting)) == digest_of(expected)


def test_digest_does_not_depend_on_the_order_of_results() -> None:
    assert digest_of([("a", 1), ("b", 2)]) == digest_of([["b", 2], ["a", 1]])
    assert digest_of([("a", 1), ("b", 2)]) != digest_of([("a", 1), ("b", 3)])


def test_a_setting_survives_the_command_line() -> None:
    setting = Setting(5, 3, 7, has_skew=False, config={"execution.target": "inline", "pipeline.name": "a=b"})
    assert parse_setting(arguments_of(setting)) == setting
