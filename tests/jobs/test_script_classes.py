"""Classes of the program's script in state, where no function of the job names them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.savepoints import write_savepoint
from penstock.common import Configuration
from penstock.common.exceptions import PenstockError
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.state import ListStateDescriptor
from penstock.graph.job_graph import JobGraph
from penstock.spark.spark_executor import SparkSide

pytestmark = pytest.mark.spark

EPOCHS = {
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "5",
    "execution.checkpointing.interval": "1 ms",
}
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


@dataclass
class Event:
    number: int


class Kept(KeyedProcessFunction):
    """Keeps what it gets, whatever that is."""

    def open(self, runtime_context):
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value, ctx):
        self._seen.add(value)
        yield sum(event.number for event in self._seen)


@pytest.fixture
def script(monkeypatch):
    """The class is one of the script, as in a program that Python was started with."""
    monkeypatch.setattr(Event, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Event", Event, raising=False)


def failing_once(marker: Path, at: int):
    path = str(marker)

    def fail(total):
        if total >= at and not Path(path).exists():
            Path(path).touch()
            raise ValueError("once")
        return total

    return fail


def totals(env, marker: Path):
    """Sums of all events so far, by key; a failure between two checkpoints of the first half."""
    events = env.from_collection([Event(number) for number in range(1, 41)]).uid("events")
    sums = events.key_by(lambda event: event.number % 4).process(Kept()).uid("kept")
    return sums.map(failing_once(marker, 40)).uid("fails")


def test_state_of_a_class_that_no_function_names_is_restored_after_a_failure(on_spark, tmp_path, script):
    assert max(totals(on_spark(2, EPOCHS | RESTARTS), tmp_path / "failed").execute_and_collect()) == 220
    assert (tmp_path / "failed").exists()


@pytest.mark.parametrize("is_copied", [False, True])
def test_state_of_a_class_that_no_function_names_is_restored_from_elsewhere(
    on_spark, spark, tmp_path, script, is_copied
):
    """From a checkpoint, and from a savepoint that Spark's tasks have made of it: they read the state, too."""
    settings = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "none",
    }
    with pytest.raises(PenstockError, match="once"):
        list(totals(on_spark(2, EPOCHS | settings), tmp_path / "failed").execute_and_collect())
    [left] = (tmp_path / "checkpoints").glob("*/chk-*/_metadata")
    path = str(left.parent)
    if is_copied:
        graph = JobGraph("copies", (), (), script_classes=(Event,))
        side = SparkSide("0" * 32, graph, Configuration(), JobDependencies(), spark)
        path = write_savepoint(find_checkpoint(path), str(tmp_path / "savepoints"), "canonical", side.run_copies)
    recovery = {"execution.state-recovery.path": path}
    assert max(totals(on_spark(3, EPOCHS | settings | recovery), tmp_path / "failed").execute_and_collect()) == 220
