"""What an editor or mypy says about programs: nothing about right ones, and something about wrong ones."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.common import Encoder, SimpleStringSchema
from penstock.datastream import CloseableIterator, DataStream, KeyedStream, StreamExecutionEnvironment, WindowedStream
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import CountTumblingWindowAssigner

HERE = Path(__file__).parent
PROGRAM = HERE / "typed_program.py"
SETTINGS = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context", "--ignore-missing-imports"]

WRONG = """
from penstock.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
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
words: DataStream[str] = numbers.map(str)
reveal_type(words.filter(len).key_by(lambda word: word[0]).count_window(2).max())
reveal_type(words.execute_and_collect(limit=3))
words.map(lambda word: word.no_such_method())
words.union(words.key_by(len)).key_by(lambda word: word + 1)
counts: DataStream[int] = words.filter(len)
"""


def said_about(*arguments):
    api = pytest.importorskip("mypy.api")
    cache = f"--cache-dir={HERE.parents[2] / '.mypy_cache' / 'samples'}"
    said, failure, status = api.run([*SETTINGS, cache, *arguments])
    assert failure == ""
    return said, status


def test_mypy_finds_nothing_in_a_right_program():
    assert said_about(str(PROGRAM)) == ("", 0)


def said_by_pyright(folder, program):
    pytest.importorskip("pyright", reason="pyright is not installed: pip install 'penstock[dev]'")
    settings = {
        "include": [str(program)],
        "extraPaths": [str(HERE.parents[2] / "src")],
        "typeCheckingMode": "standard",
    }
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright is installed, but cannot run here: {(run.stderr or run.stdout).strip()[-300:]}")
    return [each for each in json.loads(run.stdout)["generalDiagnostics"] if each["severity"] != "warning"]


def test_pyright_finds_nothing_in_a_right_program(tmp_path):
    assert said_by_pyright(tmp_path, PROGRAM) == []


def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path):
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    found = said_by_pyright(tmp_path, program)
    errors = {each["range"]["start"]["line"] for each in found if each["severity"] == "error"}
    assert {line for at, line in enumerate(WRONG.splitlines()) if at in errors} == WRONG_LINES
    assert any('is "list[str]"' in each["message"] for each in found)


def test_streams_can_be_subscripted_where_they_run():
    assert DataStream[int].__origin__ is DataStream
    assert KeyedStream[int, str].__origin__ is KeyedStream
    assert WindowedStream[int, str].__origin__ is WindowedStream
    assert CloseableIterator[int].__origin__ is CloseableIterator


def test_typed_program_runs():
    spec = importlib.util.spec_from_file_location("typed_program", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert program.main() == [("a", 1), ("a", 1), ("b", 2)]


WRONG_LINES = {
    'numbers.broadcast(ValueStateDescriptor("no map"))',
    "numbers.connect(3)",
    "numbers.process(Keyed())",
    "words.map(lambda word: word.no_such_method())",
    "words.union(words.key_by(len)).key_by(lambda word: word + 1)",
    "counts: DataStream[int] = words.filter(len)",
}


def test_mypy_knows_what_methods_return_and_finds_wrong_calls():
    said, status = said_about("-c", WRONG)
    revealed = [line.split('"')[1].rpartition(".")[2] for line in said.splitlines() if "Revealed type" in line]
    assert revealed == [
        "DataStream[Any]", "BroadcastStream", "ConnectedStreams", "BroadcastConnectedStream", "CloseableIterator[Any]",
        "list[Any]", "DataStream[str]", "list[str]",
    ]  # fmt: skip
    errors = [line for line in said.splitlines() if "error:" in line and "note:" not in line]
    wrong = WRONG.splitlines()
    assert status == 1
    assert {wrong[int(line.split(":")[1]) - 1] for line in errors} == WRONG_LINES


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
    assert repr(env).startswith("<StreamExecutionEnvironment of 2 operators, {")


def test_sinks_and_schemas_say_what_they_are():
    assert repr(SimpleStringSchema()) == "SimpleStringSchema('utf-8')"
    shown = repr(FileSink.for_row_format("/out", Encoder.simple_string_encoder()).build())
    assert "base_path='/out'" in shown and "Encoder.simple_string_encoder('utf-8')" in shown and " at 0x" not in shown
