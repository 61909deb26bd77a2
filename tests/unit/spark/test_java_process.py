from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.common.exceptions import EnvironmentSetupError
from penstock.spark import java_process
from penstock.spark.java_process import JavaProcess

# The address is there all at once, as with Spark.
LISTENS = """
echo "$@" > "$SPARK_HOME/said"
cp "$SPARK_HOME/address" "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
exec cat
"""
ADDRESS = struct.pack(">ii", 4711, 6) + b"secret"


@pytest.fixture
def spark_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Spark that can do no more than to say where it listens; a Java that nobody asks."""
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").touch(mode=0o755)
    (java / "release").write_text('JAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "address").write_bytes(ADDRESS)
    submits(tmp_path, LISTENS)
    return tmp_path


def submits(home: Path, script: str) -> None:
    program = home / "bin" / "spark-submit"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def started(spark_home: Path):
    processes: list[JavaProcess] = []

    def start(settings: dict[str, str]) -> JavaProcess:
        processes.append(JavaProcess(settings, os.environ))
        return processes[-1]

    yield start
    for process in processes:
        process.end()


def test_java_says_where_it_listens_and_gets_the_settings(started, spark_home):
    assert started({"spark.master": "local[1]"}).address() == (4711, "secret")
    assert (spark_home / "said").read_text() == "--conf spark.master=local[1] pyspark-shell\n"


def test_java_that_ends_early_is_reported_with_its_code(spark_home, started):
    submits(spark_home, "exit 3")
    with pytest.raises(EnvironmentSetupError, match="Java ended with code 3 before Spark had started"):
        started({}).address()


def test_java_started_ahead_is_used_if_settings_and_environment_are_the_same(spark_home):
    settings = {"spark.master": "local[1]"}
    java_process.start_ahead(settings, os.environ)
    java = java_process.java_process(settings, os.environ)
    other = java_process.java_process(settings, os.environ)
    try:
        assert java.address() == (4711, "secret")
        assert other is not java  # It is given out once.
    finally:
        java.end()
        other.end()


@pytest.mark.parametrize(
    ("settings", "environment"), [({"spark.master": "local[2]"}, {}), ({"spark.master": "local[1]"}, {"NEW": "1"})]
)
def test_java_started_ahead_is_ended_if_the_program_changed_what_it_depends_on(spark_home, settings, environment):
    java_process.start_ahead({"spark.master": "local[1]"}, os.environ)
    ahead = java_process._ahead
    java = java_process.java_process(settings, {**os.environ, **environment})
    java.end()
    assert ahead is not None and ahead is not java
    assert ahead.process.returncode is not None


def test_nobody_else_s_spark_leaves_java_running(spark_home):
    java_process.start_ahead({}, os.environ)
    ahead = java_process._ahead
    java_process.end_ahead()
    assert ahead is not None and ahead.process.returncode is not None


def test_nothing_is_left_behind(spark_home, started, monkeypatch, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    java = started({})
    assert list(scratch.glob("*/*/java-*")) != []
    java.end()
    assert list(scratch.glob("*/*/java-*")) == []


def test_java_that_nobody_asked_for_ends_with_the_program(spark_home):
    program = (
        "import os; from penstock.spark import java_process; java_process.start_ahead({}, os.environ); "
        "print(java_process._ahead.process.pid)"
    )
    submits(spark_home, "exec sleep 600")  # It never says where it listens, nor sees that its input has ended.
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_only_one_java_waits(spark_home):
    java_process.start_ahead({}, os.environ)
    first = java_process._ahead
    java_process.start_ahead({}, os.environ)
    java_process.end_ahead()
    assert first is not None and first.process.returncode is not None


def test_secrets_are_not_on_the_command_line(started, spark_home):
    submits(spark_home, 'cp "$2" "$SPARK_HOME/properties"; stat -c %a "$2" > "$SPARK_HOME/mode"' + LISTENS)
    secrets = {
        "spark.hadoop.fs.s3a.secret.key": "a b=c\\d",
        "spark.authenticate.secret": "s3cr3t",
        "spark.jars.repositories": "https://me:pw1234@host/maven",
    }
    started({"spark.master": "local[1]", **secrets}).address()
    said = (spark_home / "said").read_text()
    assert not any(value in said for value in secrets.values()) and "spark.master=local[1]" in said
    assert (spark_home / "mode").read_text() == "600\n"
    properties = dict(line.split("=", 1) for line in (spark_home / "properties").read_text().splitlines())
    assert properties == {
        "spark.hadoop.fs.s3a.secret.key": r"a\ b\=c\\d",
        "spark.authenticate.secret": "s3cr3t",
        "spark.jars.repositories": r"https\://me\:pw1234@host/maven",
    }


def test_spark_on_one_machine_takes_itself_for_local(started, spark_home, monkeypatch):
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    submits(spark_home, 'echo "$SPARK_LOCAL_IP" > "$SPARK_HOME/ip"' + LISTENS)
    started({"spark.master": "local[1]"}).address()
    assert (spark_home / "ip").read_text() == "127.0.0.1\n"
    started({"spark.master": "spark://host:7077"}).address()
    assert (spark_home / "ip").read_text() == "\n"
