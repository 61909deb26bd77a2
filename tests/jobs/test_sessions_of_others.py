"""Jobs on a Spark that Penstock has not started: by spark-submit, and on a session of the program's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WITHIN_S = 240

COUNT = """
words = env.from_collection(["to be or", "not to be"]).flat_map(lambda line: line.split())
counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
counts.print()
env.execute("words")
"""
COUNTED = ["(be,1)", "(be,2)", "(not,1)", "(or,1)", "(to,1)", "(to,2)"]

SUBMITTED = f"""
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
{COUNT}
from pyspark import SparkContext

for key in ("spark.master", "spark.task.maxFailures", "spark.stage.maxConsecutiveAttempts", "spark.app.name"):
    print("setting", key, SparkContext._active_spark_context.getConf().get(key))
"""

OWN_SESSION = f"""
from pyspark.sql import SparkSession

from penstock.datastream import StreamExecutionEnvironment

spark = SparkSession.builder.master("local[3]").appName("a notebook").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame([(number, number % 3) for number in range(30)], "n int, k int")
env = StreamExecutionEnvironment.get_execution_environment().use_spark_session(spark).set_parallelism(2)
{COUNT}
env.from_data_frame(frame).map(lambda row: (row[1], row[0])).key_by(lambda pair: pair[0]).sum(1).print()
env.execute("a DataFrame of the session")
print("rows", frame.count(), spark.sparkContext.appName, spark.sparkContext.getConf().get("spark.task.maxFailures"))
"""


def run(words: list[str], folder: Path) -> list[str]:
    """The lines that the program prints."""
    given = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    given["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    ended = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True, timeout=WITHIN_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def printed(lines: list[str]) -> list[str]:
    return sorted(line.partition("> ")[2] for line in lines if "> " in line)


def test_job_runs_under_spark_submit_in_client_mode_with_its_settings(tmp_path):
    (tmp_path / "job.py").write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = ["--name", "submitted", "--conf", "spark.task.maxFailures=3", "--conf", "spark.ui.enabled=false"]
    lines = run([str(submit), "--master", "local[3]", *given, "job.py"], tmp_path)
    assert printed(lines) == COUNTED
    assert [line for line in lines if line.startswith("setting")] == [
        "setting spark.master local[3]",
        "setting spark.task.maxFailures 3",
        "setting spark.stage.maxConsecutiveAttempts 1",
        "setting spark.app.name submitted",
    ]


def test_job_runs_on_a_session_that_the_program_has_made(tmp_path):
    (tmp_path / "notebook.py").write_text(OWN_SESSION)
    lines = run([sys.executable, "notebook.py"], tmp_path)
    sums = {key: sum(range(key, 30, 3)) for key in range(3)}
    found = printed(lines)
    assert [line for line in found if line in COUNTED] == COUNTED
    assert {f"({key},{total})" for key, total in sums.items()} <= set(found)
    assert "rows 30 a notebook None" in lines  # The session is as it was, and still runs.
