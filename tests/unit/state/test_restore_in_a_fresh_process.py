"""A script whose classes change between two runs, each in a process of its own: keys and values are found by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.savepoints import one_after_the_other, write_savepoint
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.script_classes import classes_of_script
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.testing import JobInEpochs, job_in_epochs

{classes}

class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def process_element(self, number, ctx):
        before = self.total.value()
        count = 1 if before is None else before.count + 1
        self.total.update(Total(count=count, last=Pair(a=number, b=0)))
        self.seen.put(Pair(a=number % 2, b=1), describe)
        yield number, str(before), sorted(f"{{pair.a}}{{pair.b}} {{how()}}" for pair, how in self.seen.items())

def program():
    @dataclass(frozen=True)
    class Inner:
        number: int

    key_of = lambda number: (Key(id=number % 5), Inner(number % 5))
    return lambda stream: stream.key_by(key_of).process(Sum()).uid("sum")

if __name__ == "__main__":
    folder, path, parallelism, *numbers = sys.argv[1:]
    # As `execute` does: the classes of the script travel with the job.
    plain = job_in_epochs._graph_of
    job_in_epochs._graph_of = lambda *given: with_classes(plain(*given))

    def with_classes(graph):
        from dataclasses import replace
        return replace(graph, script_classes=(*classes_of_script(), *graph.script_classes))

    job = JobInEpochs(program(), int(parallelism), restored=find_checkpoint(path) if path else None)
    for line in job.epoch([int(number) for number in numbers]):
        print(line, file=sys.stderr)
    print(write_savepoint(job.checkpoint, folder, "{format}", one_after_the_other))
"""

BEFORE = """
@dataclass(frozen=True)
class Key:
    id: int

class Pair(NamedTuple):
    a: int
    b: int

@dataclass
class Total:
    count: int
    last: Pair

def describe():
    return "old"
"""

AFTER = """
@dataclass(frozen=True)
class Key:
    region: str = "eu"
    id: int = 0

class Pair(NamedTuple):
    b: int
    a: int
    note: str = "new"

@dataclass(slots=True)
class Total:
    last: Pair
    tags: list = field(default_factory=list)
    count: int = 0

def describe():
    return "new"
"""


def run(script: Path, *arguments: str) -> tuple[str, list[str]]:
    answer = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip().splitlines()[-1], answer.stderr.strip().splitlines()


@pytest.mark.parametrize(("format_type", "parallelism"), [("native", "3"), ("canonical", "2")])
def test_state_follows_its_keys_and_classes_into_a_new_process(tmp_path, format_type, parallelism):
    script = tmp_path / "job.py"
    script.write_text(SCRIPT.format(classes=BEFORE, format=format_type))
    path, _ = run(script, str(tmp_path / "savepoints"), "", "3", *map(str, range(10)))
    script.write_text(SCRIPT.format(classes=AFTER, format=format_type))
    _, lines = run(script, str(tmp_path / "more"), path, parallelism, *map(str, range(5)))
    pairs = ["01 new", "11 new"]
    expected = [
        (number, f"Total(last=Pair(b=0, a={number + 5}, note='new'), tags=[], count=2)", pairs) for number in range(5)
    ]
    assert lines == [repr(each) for each in expected]
