"""What is known of Spark's Java process when a call to it fails."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from penstock.spark.java_loss import has_java, java_loss, unless_java_ended


class Context:
    """Answers as a SparkContext does whose Java process runs, was stopped, or is gone."""

    def __init__(self, is_stopped: bool = False, failure: Exception | None = None) -> None:
        self._is_stopped, self._failure = is_stopped, failure

    @property
    def _jsc(self):
        if self._failure is not None:
            raise self._failure
        return SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: self._is_stopped))


GONE = [Py4JNetworkError("no answer"), ConnectionRefusedError(111, "Connection refused"), AttributeError("_jsc")]


def ended(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code])


def test_a_process_that_answers_is_not_lost():
    assert has_java(Context()) and java_loss(Context()) is None


@pytest.mark.parametrize("failure", GONE, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9"),
        ("import os; os._exit(3)", "has ended with code 3"),
    ],
)
def test_a_loss_says_how_the_process_has_ended(monkeypatch, failure, code, said):
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=ended(code)))
    assert java_loss(Context(failure=failure)) == f"Spark's Java process {said}"


def test_a_process_that_somebody_else_has_started_is_lost_without_a_code(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())
    assert "has ended, or its SparkContext was stopped" in str(java_loss(Context(failure=GONE[0])))


@pytest.mark.parametrize("failure", GONE, ids=lambda each: type(each).__name__)
def test_what_makes_no_difference_without_java_is_left_undone(failure):
    def act():
        raise failure

    unless_java_ended(Context(failure=failure), act)
    with pytest.raises(type(failure)):
        unless_java_ended(Context(), act)
