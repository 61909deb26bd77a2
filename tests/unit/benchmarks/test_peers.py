"""Peers get the same input and give the same answer; one that is missing is left out."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks import systems
from benchmarks.__main__ import _setting_on, compare, parse, runs_of
from benchmarks.child import environment_of, run_on
from benchmarks.job import Setting, digest_of
from benchmarks.peers import installation
from benchmarks.peers.installation import PeerUnavailableError, install_once, maven_classes, pyflink_python
from benchmarks.peers.python_loops import INDEPENDENT
from benchmarks.programs import NAMES, code_of, right_answer
from benchmarks.systems import PEERS, PENSTOCK, System, rows_of

SMALL = Setting(12_000, 2, keys=20)
ARGUMENTS = ["--words", "12000", "--parallelism", "2", "--keys", "20", "--repeat", "1"]
MODULES = {
    "bytewax_flows": systems.BYTEWAX_BENCHMARKS,
    "pyspark_queries": systems.PYSPARK_BENCHMARKS,
    "python_loops": systems.PYTHON_LOOP_BENCHMARKS,
}


def _row(name: str) -> System:
    return next(row for rows in PEERS.values() for row in rows if row.name == name)


@pytest.fixture
def no_installing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str]) -> None:
        raise PeerUnavailableError("cannot be installed: no network")

    monkeypatch.setattr(installation, "run", fail)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder for installations."""
    monkeypatch.setattr(installation, "BENCH", tmp_path / ".bench")
    return tmp_path / ".bench"


def _answer(module: str, program: str, setting: Setting) -> str:
    if module == "bytewax_flows":
        pytest.importorskip("bytewax")
    results, _ = importlib.import_module(f"benchmarks.peers.{module}").RUNS[program](setting)
    return digest_of(results)


@pytest.mark.parametrize("has_skew", [True, False])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("program", ["word_count", "forked.word_count"])
def test_hand_fused_word_count_gives_the_batch_answer(program: str, parallelism: int, has_skew: bool) -> None:
    setting = Setting(250_000, parallelism, keys=20, has_skew=has_skew)
    assert _answer("python_loops", program, setting) == right_answer("word_count", setting).digest


@pytest.mark.parametrize("program", [f"forked.{name}" for name in INDEPENDENT] + ["calling.stateless_chain"])
def test_a_forked_or_calling_loop_gives_the_batch_answer(program: str) -> None:
    setting = Setting(12_000, 3)
    assert _answer("python_loops", program, setting) == right_answer(program.partition(".")[2], setting).digest


@pytest.mark.parametrize("program", ["sliding_windows", "keyed_timers", "connected_join", "nexmark.q5", "nexmark.q11"])
def test_a_loop_that_closes_windows_and_fires_timers_on_its_way_gives_the_batch_answer(program: str) -> None:
    setting = Setting(650_000 if program == "sliding_windows" else 50_000, keys=500)
    assert _answer("python_loops", program, setting) == right_answer(program, setting).digest


@pytest.mark.parametrize("benchmark_name", systems.BYTEWAX_BENCHMARKS)
def test_bytewax_gives_the_batch_answer(benchmark_name: str) -> None:
    assert _answer("bytewax_flows", benchmark_name, SMALL) == right_answer(benchmark_name, SMALL).digest


@pytest.mark.spark
@pytest.mark.parametrize("benchmark_name", systems.PYSPARK_BENCHMARKS)
def test_plain_pyspark_gives_the_batch_answer(spark: Any, benchmark_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A session of its own: the settings of the one that all tests share must stay as they are.
    monkeypatch.setattr("benchmarks.peers.pyspark_queries.session_of", lambda parallelism: spark.newSession())
    assert _answer("pyspark_queries", benchmark_name, SMALL) == right_answer(benchmark_name, SMALL).digest


@pytest.mark.parametrize("module", [name for name in MODULES if name != "bytewax_flows"])
def test_a_peer_has_the_programs_that_its_rows_offer(module: str) -> None:
    programs = importlib.import_module(f"benchmarks.peers.{module}").RUNS
    plain = {name for name in programs if name.partition(".")[0] not in ("calling", "forked")}
    assert plain == set(MODULES[module])


def test_forked_loops_are_those_that_their_row_offers() -> None:
    programs = importlib.import_module("benchmarks.peers.python_loops").RUNS
    forked = {name.removeprefix("forked.") for name in programs if name.startswith("forked.")}
    assert forked == set(systems.FORKED_LOOP_BENCHMARKS)


def test_flink_java_has_every_program() -> None:
    source = next(systems.FLINK_JAVA.rglob("Benchmark.java")).read_text()
    assert set(re.findall(r'case "(.*?)"', source)) == {code_of(name) for name in NAMES}


@pytest.mark.parametrize("row", ["pyspark", "python loop"])
def test_a_peer_in_our_own_interpreter_gets_the_benchmark_and_the_setting(row: str) -> None:
    module = {"pyspark": "pyspark_queries", "python loop": "python_loops"}[row]
    command = [sys.executable, "-m", f"benchmarks.peers.{module}", "word_count", *ARGUMENTS]
    assert _row(row).command("word_count", SMALL) == command


def test_penstock_and_pyflink_run_the_program_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(installation.PYFLINK_PYTHON, "python-with-flink")
    program = ["-m", "benchmarks.keyed_count", *ARGUMENTS]
    assert PENSTOCK.command("keyed_count", SMALL) == [sys.executable, *program]
    assert _row("pyflink thread").command("keyed_count", SMALL) == ["python-with-flink", *program]


def test_flink_java_gets_a_jvm_with_the_classes_that_maven_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "maven_classes", lambda project: f"classes of {project.name}")
    monkeypatch.setenv("JAVA_HOME", "home")
    java, *arguments = systems.flink_java("keyed_timers", SMALL) or []
    assert java == os.path.join("home", "bin", "java")
    assert arguments[-len(ARGUMENTS) - 4 :] == [
        "-cp", "classes of flink_java", "penstock.benchmarks.Main", "keyed_timers", *ARGUMENTS,
    ]  # fmt: skip


def test_the_loop_with_calls_is_a_program_of_its_own() -> None:
    command = _row("python loop with calls").command("stateless_chain", SMALL) or []
    assert command[2:4] == ["benchmarks.peers.python_loops", "calling.stateless_chain"]


def test_a_program_with_settings_of_its_own_is_the_same_code_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(["keyed_count_on_disk", "--words", "10", "--config", "a.key=1"])
    [(name, setting)] = runs_of(parsed)
    penstock, java = (_setting_on(system, name, setting, 10) for system in (PENSTOCK, _row("flink java")))
    disk = {"state.backend.type": "rocksdb"}
    assert (penstock.config, java.config) == ({**disk, "a.key": "1"}, disk)
    assert (PENSTOCK.command(name, penstock) or [])[2] == "benchmarks.keyed_count"
    assert _row("python loop").command(name, setting) is None


@pytest.mark.parametrize("row", ["bytewax", "pyspark", "python loops forked"])
def test_a_peer_without_a_version_of_a_benchmark_has_no_command_and_installs_nothing(
    row: str, no_installing: None, bench: Path
) -> None:
    assert _row(row).command("broadcast_rules", SMALL) is None
    assert run_on(_row(row), "broadcast_rules", SMALL, timeout_seconds=1) is None


def test_only_pyflink_runs_the_programs_on_pyflinks_api() -> None:
    assert environment_of(_row("pyflink process"), "bin/python")["BENCH_PACKAGE"] == "pyflink"
    others = [PENSTOCK, _row("bytewax"), _row("flink java"), _row("python loop")]
    assert {environment_of(row, "bin/python")["BENCH_PACKAGE"] for row in others} == {"penstock"}


def test_a_peer_that_cannot_be_installed_is_left_out_with_a_note(
    no_installing: None, bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = System("penstock", "penstock", lambda benchmark, setting: None)
    monkeypatch.setattr("benchmarks.__main__.PENSTOCK", failing)
    parsed = parse(["word_count", "--words", "10", "--peers", "bytewax"])
    outcomes, notes = compare("word_count", Setting(10), parsed)
    assert outcomes == []
    assert notes == ["bytewax is left out: cannot be installed: no network"]


def test_pyflink_that_cannot_be_installed_names_the_variable_that_helps(
    no_installing: None, bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(installation.PYFLINK_PYTHON, raising=False)
    with pytest.raises(PeerUnavailableError, match=f"no network; set {installation.PYFLINK_PYTHON} to a Python"):
        pyflink_python()


def test_flink_java_without_a_compiler_says_what_to_install(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(PeerUnavailableError, match="without openjdk-17-jdk-headless and maven; install them"):
        maven_classes(systems.FLINK_JAVA)


def test_a_peer_is_installed_once_for_each_version(bench: Path) -> None:
    installed: list[str] = []
    for version in ["1", "1", "2"]:
        install_once(bench / "peer", version, partial(installed.append, version))
    assert installed == ["1", "2"]


def test_an_installation_that_failed_is_tried_again(bench: Path, no_installing: None) -> None:
    def fail() -> None:
        installation.run(["pip"])

    installed: list[str] = []
    with pytest.raises(PeerUnavailableError):
        install_once(bench / "peer", "1", fail)
    install_once(bench / "peer", "1", lambda: installed.append("1"))
    assert installed == ["1"]


@pytest.mark.parametrize(
    ("output", "errors", "reason"),
    [
        (
            "[ERROR] COMPILATION ERROR\n[ERROR] Failed to execute goal\n[ERROR] -> [Help 1]",
            "",
            "Failed to execute goal",
        ),
        ("", "Collecting peer\nERROR: no matching distribution\n", "ERROR: no matching distribution"),
        ("", "", "no message"),
    ],
)
def test_the_reason_of_a_failed_installation_is_what_its_tool_said(output: str, errors: str, reason: str) -> None:
    assert installation._reason(output, errors) == reason


def test_a_peer_may_be_one_row_of_a_group():
    assert [row.name for row in rows_of("pyflink")] == ["pyflink process", "pyflink thread"]
    assert [row.name for row in rows_of("pyflink-thread")] == ["pyflink thread"]
    assert rows_of("flonk") == []
