"""Savepoints that Spark's tasks write: another process reads state that is made of the script's classes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import make_dataclass
from functools import partial
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.common.exceptions import StateMismatchError
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.state.codec import decode_state, encode_state, use_script_classes
from penstock.spark import spark_executor
from penstock.spark.dependencies import ShippedDependencies
from penstock.spark.spark_executor import SparkSide, _CopyInWorker
from penstock.spark.task_failures import reason_in
from penstock.spark.task_slots import SlotLedger

CHILD = """
import pickle, sys
carry_out, copy = pickle.load(sys.stdin.buffer)
print(carry_out(copy))
"""


def test_copy_knows_the_classes_of_the_script():
    event = make_dataclass("Event", ["number"])
    event.__module__ = "__main__"
    use_script_classes([event])
    copy = partial(decode_state, encode_state(event(3)))
    use_script_classes(())
    carry_out = _CopyInWorker(ShippedDependencies(), encode_in_driver((event,)))
    answer = subprocess.run(
        [sys.executable, "-c", CHILD], input=pickle.dumps((carry_out, copy)), capture_output=True, check=True
    )
    assert answer.stdout == b"Event(number=3)\n"


class Listed:
    """Instead of an RDD."""

    def __init__(self, ledger: SlotLedger, elements: list, function=None) -> None:
        self._ledger, self._elements, self._function = ledger, elements, function

    def map(self, function):
        return Listed(self._ledger, self._elements, function)

    def collect(self) -> list:
        with pytest.raises(Exception, match="available 0 of 3"):
            self._ledger.take(1, 1, 0, 0, lambda: False, "a job that starts meanwhile")
        return [self._function(each) for each in self._elements]


@pytest.mark.parametrize(("held", "where"), [(2, "Spark"), (3, "driver")])
def test_slot_that_a_copy_needs_is_not_taken_by_workers_that_start_meanwhile(monkeypatch, held, where):
    ledger = SlotLedger(lambda: 3, {}, settled_s=0)
    ledger.take(held, 1, 0, 0, lambda: False, "workers")
    monkeypatch.setattr(spark_executor, "slot_ledger", lambda context: ledger)
    # Spark knows of workers only when their tasks have begun.
    monkeypatch.setattr(spark_executor, "free_slots", lambda context: 3)
    used: list[str] = []

    def parallelize(elements: list, parts: int) -> Listed:
        used.append("Spark")
        return Listed(ledger, elements)

    side = SparkSide.__new__(SparkSide)
    side.job_id, side.dependencies = "0" * 32, ShippedDependencies()
    side.job_graph = SimpleNamespace(job_name="job", script_classes=())
    side.context = side.context_for_workers = SimpleNamespace(setJobGroup=lambda *names: None, parallelize=parallelize)
    assert side.run_copies([lambda: ("copied",)]) == [("copied",)]
    assert (used or ["driver"]) == [where] and ledger._taken == held


def refused():
    raise StateMismatchError("state 'total' cannot be read back")


def test_copy_that_does_not_fit_is_an_answer_and_not_the_failure_of_a_task():
    carry_out = _CopyInWorker(ShippedDependencies(), encode_in_driver(()))
    answer = pickle.loads(pickle.dumps(carry_out(refused)))
    with pytest.raises(StateMismatchError, match=r"^state 'total' cannot be read back$"):
        spark_executor._written(answer)


@pytest.mark.spark
def test_of_a_task_that_fails_only_the_exception_is_reported(spark):
    def fail(number):
        try:
            {}["cause"]
        except KeyError as error:
            raise OSError("no space left\nin the folder") from error

    with pytest.raises((Py4JJavaError, PySparkException)) as raised:
        spark.sparkContext.parallelize([1], 1).map(fail).collect()
    assert len(str(raised.value).splitlines()) > 10
    assert reason_in(str(raised.value)) == "OSError: no space left\nin the folder"


def test_message_without_a_traceback_is_its_first_line():
    text = "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job cancelled\n\tat java.x"
    assert reason_in(text) == "An error occurred while calling o1.collect."
