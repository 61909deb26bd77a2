"""What an editor or mypy says about programs: nothing about right ones, and something about wrong ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import CountTumblingWindowAssigner

HERE = Path(__file__).parent
PROGRAM = HERE / "typed_program.py"
SETTINGS = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context", "--ignore-missing-imports"]

WRONG = """
from penstock.common import Configuration
from penstock.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([1])
rules = MapStateDescriptor("rules")
reveal_type(numbers.broadcast())
reveal_type(numbers.broadcast(rules))
reveal_type(numbers.connect(numbers))
reveal_type(numbers.connect(numbers.broadcast(rules)))
reveal_type(numbers.execute_and_collect())
reveal_type(numbers.execute_and_collect("a job", 3))
numbers.broadcast(ValueStateDescriptor("no map"))
numbers.connect(3)
class Keyed(KeyedProcessFunction):
    pass
numbers.process(Keyed())
"""


def said_about(*arguments):
    api = pytest.importorskip("mypy.api")
    cache = f"--cache-dir={HERE.parents[2] / '.mypy_cache' / 'samples'}"
    said, failure, status = api.run([*SETTINGS, cache, *arguments])
    assert failure == ""
    return said, status


def test_mypy_finds_nothing_in_a_right_program():
    assert said_about(str(PROGRAM)) == ("", 0)


def test_typed_program_runs():
    spec = importlib.util.spec_from_file_location("typed_program", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert program.main() == [("a", 1), ("a", 1), ("b", 2)]


def test_mypy_knows_what_methods_return_and_finds_wrong_calls():
    said, status = said_about("-c", WRONG)
    revealed = [line.split('"')[1].rpartition(".")[2] for line in said.splitlines() if "Revealed type" in line]
    assert revealed[:4] == ["DataStream", "BroadcastStream", "ConnectedStreams", "BroadcastConnectedStream"]
    assert revealed[4] == "CloseableIterator" and "list[Any]" in said
    errors = [line for line in said.splitlines() if "error:" in line and "note:" not in line]
    wrong = WRONG.splitlines()
    lines = {wrong[int(line.split(":")[1]) - 1] for line in errors}
    assert status == 1
    assert {'numbers.broadcast(ValueStateDescriptor("no map"))', "numbers.connect(3)"} <= lines
    assert "numbers.process(Keyed())" in lines


def test_streams_and_sinks_say_what_they_are():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.from_collection([1]).map(lambda number: number).uid("numbers")
    keyed = numbers.key_by(lambda number: number)
    at = numbers.transformation.id
    assert repr(numbers) == f"<DataStream 'Map', id {at}, uid 'numbers', parallelism 2>"
    assert repr(keyed).startswith("<KeyedStream 'key_by', id")
    assert repr(numbers.print().name("shown")).startswith("<DataStreamSink 'Sink: shown', id")
    rules = numbers.broadcast(MapStateDescriptor("rules"))
    assert repr(rules).endswith("with state 'rules'>")
    assert repr(numbers.connect(rules)) == f"<BroadcastConnectedStream of {numbers!r} and {rules!r}>"
    assert repr(numbers.connect(numbers)) == f"<ConnectedStreams of {numbers!r} and {numbers!r}>"
    windows = keyed.window(CountTumblingWindowAssigner.of(2))
    assert repr(windows) == f"<WindowedStream CountTumblingWindowAssigner(2) of {keyed!r}>"
