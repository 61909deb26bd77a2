"""Which class a name in state means: that of the current job, in a process that may run many."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import make_dataclass

import cloudpickle  # type: ignore[import-untyped]
import pytest

from penstock.common import Configuration
from penstock.datastream.script_classes import classes_of_script
from penstock.jobmaster.execution.side_by_side import run_side_by_side
from penstock.runtime.state.codec import decode_state, encode_state, use_script_classes


def class_of_script(name: str, *fields: str) -> type:
    made = make_dataclass(name, fields)
    made.__module__ = "__main__"
    return made


@pytest.fixture(autouse=True)
def no_job():
    use_script_classes(())
    yield
    use_script_classes(())


def test_state_is_read_with_the_classes_of_the_job_at_hand():
    mine, others = class_of_script("Event", "number"), class_of_script("Event", "number")
    use_script_classes([mine])
    content = encode_state([mine(1)])
    cloudpickle.dumps(others)  # Another job's class of that name is the newest that this process knows.
    assert type(decode_state(content)[0]) is mine
    use_script_classes([others])
    assert type(decode_state(content)[0]) is others


def test_each_thread_has_the_classes_of_its_job():
    mine, others = class_of_script("Event", "number"), class_of_script("Event", "number")
    use_script_classes([mine])
    content = encode_state(mine(1))
    found = {}

    def another_job():
        use_script_classes([others])
        found["other job"] = type(decode_state(content))

    thread = threading.Thread(target=another_job)
    thread.start()
    thread.join()
    found["this job"] = type(decode_state(content))
    regions = [
        lambda: found.update(first=type(decode_state(content))),
        lambda: found.update(second=type(decode_state(content))),
    ]
    run_side_by_side(regions, lambda: None)
    assert found == {"other job": others, "this job": mine, "first": mine, "second": mine}


def test_class_within_a_class_is_found():
    outer, inner = class_of_script("Outer"), class_of_script("Inner", "number")
    inner.__qualname__ = "Outer.Inner"
    outer.Inner = inner
    use_script_classes([outer])
    assert decode_state(encode_state(inner(3))) == inner(3)


def test_what_another_main_module_has_imported_is_no_class_of_the_script(monkeypatch):
    content = encode_state_of(class_of_script("Configuration", "number"))
    monkeypatch.setattr(sys.modules["__main__"], "Configuration", Configuration, raising=False)
    use_script_classes(())
    with pytest.raises(AttributeError, match="the program's script has no class 'Configuration'"):
        decode_state(content)


def encode_state_of(kind: type) -> bytes:
    use_script_classes([kind])
    return encode_state(kind(1))


def test_class_that_is_missing_is_named():
    content = encode_state_of(class_of_script("Gone", "number"))
    use_script_classes(())
    with pytest.raises(AttributeError, match="the program's script has no class 'Gone'"):
        decode_state(content)


def test_class_that_cannot_travel_does_not_keep_the_others(monkeypatch):
    good, bad = class_of_script("Good", "number"), class_of_script("Bad")
    bad.lock = threading.Lock()
    for kind in (good, bad):
        monkeypatch.setattr(sys.modules["__main__"], kind.__name__, kind, raising=False)
    assert good in classes_of_script()
    assert bad not in classes_of_script()


SCRIPT = """
from dataclasses import dataclass
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream import submission
from penstock.cluster import start

@dataclass
class Event:
    number: int

def show(graph, *_):
    print(*(each.__name__ for each in graph.script_classes))
    raise SystemExit

start.start_job = show
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
env.execute()
"""


def test_job_carries_the_classes_of_its_script():
    answer = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert answer.stdout == "Event\n"
