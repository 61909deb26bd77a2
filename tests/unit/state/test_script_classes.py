"""Which class a name in state means: that of the current job, in a process that may run many."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import ModuleType

import cloudpickle  # type: ignore[import-untyped]
import pytest

from penstock.common import Configuration
from penstock.datastream.script_classes import classes_of_script, definitions_in, imports_of_script
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


def test_class_that_the_script_now_imports_is_found_where_it_was_moved_to(monkeypatch):
    content = encode_state_of(class_of_script("Moved", "number"))
    module = ModuleType("module_of_the_program")
    module.Moved = make_dataclass("Moved", ["number"])
    module.Moved.__module__ = module.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys.modules["__main__"], "Moved", module.Moved, raising=False)
    use_script_classes(pickle.loads(cloudpickle.dumps(imports_of_script())))
    assert decode_state(content) == module.Moved(1)


def test_classes_that_never_were_the_scripts_do_not_travel(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "Configuration", Configuration, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "Path", Path, raising=False)
    assert {each.name for each in imports_of_script()}.isdisjoint({"Configuration", "Path"})


def make_key():
    @dataclass(frozen=True)
    class Key:
        name: str

    return Key


def in_state_of_a_job(definitions, value):
    """`value` as the next start of the job reads it, with what its program then defines."""
    use_script_classes(definitions_in([lambda: definitions]))
    return encode_state(value)


def test_class_made_inside_a_function_is_that_of_the_program_which_reads_the_state():
    before, now = make_key(), make_key()
    content = in_state_of_a_job([before], {before("a"): [before("b")]})
    use_script_classes(definitions_in([lambda: now]))
    assert decode_state(content) == {now("a"): [now("b")]}
    assert type(next(iter(decode_state(content)))) is now


def test_class_inside_a_function_that_is_no_dataclass_is_found_by_name_too():
    def make():
        class Plain:
            version = 1

        return Plain

    before, now = make(), make()
    now.version = 2
    content = in_state_of_a_job([before], before())
    use_script_classes(definitions_in([lambda: now]))
    assert decode_state(content).version == 2


def test_classes_of_one_name_are_not_mistaken_for_each_other():
    one, other = make_key(), make_key()
    content = in_state_of_a_job([one, other], [one("a"), other("a")])
    assert list(map(type, decode_state(content))) == [one, other]


def function_of_script(name: str, result: int):
    scope = {"__name__": "__main__"}
    exec(f"def {name}():\n    return {result}", scope)
    return scope[name]


def test_function_of_the_script_in_state_is_that_of_the_program_which_reads_it():
    before, now = function_of_script("rate", 1), function_of_script("rate", 2)
    content = in_state_of_a_job([before], {"rate": before})
    use_script_classes(definitions_in([lambda: now]))
    assert decode_state(content)["rate"]() == 2


def test_function_that_the_program_no_longer_has_is_named():
    content = in_state_of_a_job([function_of_script("rate", 1)], function_of_script("rate", 1))
    use_script_classes(())
    with pytest.raises(AttributeError, match="the program's script has no class 'rate'"):
        decode_state(content)


def test_lambda_in_state_brings_its_code():
    content = in_state_of_a_job([], lambda: 3)
    use_script_classes(())
    assert decode_state(content)() == 3


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
