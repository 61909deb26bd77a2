"""A job's files in the temporary folder: gone with the job, or with the next one if the process was killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource

count = int(sys.argv[1]) or None
env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.target", "inline"))
source = DataGeneratorSource(lambda number: number, count) if count else DataGeneratorSource(lambda number: number)
env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").print()
env.execute()
"""


@pytest.fixture
def start(tmp_path):
    started = []

    def start(count):
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(count)], stdout=subprocess.PIPE, env=environment, text=True
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def jobs_in(folder):
    return [path.name[:4] for path in folder.glob("penstock-files-*/*/*") if path.is_dir()]


def test_files_of_a_killed_process_are_removed_by_the_next_one(tmp_path, start):
    killed = start(0)
    assert killed.stdout.readline()
    assert jobs_in(tmp_path) == ["job-"]
    killed.kill()
    killed.wait()
    assert jobs_in(tmp_path) == ["job-"]
    next_one = start(3)
    assert next_one.stdout.read().split() and next_one.wait() == 0
    assert jobs_in(tmp_path) == []


def test_folder_in_an_object_store_is_refused():
    from penstock.common import Configuration
    from penstock.common.exceptions import ConfigurationError
    from penstock.datastream import StreamExecutionEnvironment

    settings = {"execution.target": "inline", "penstock.working-dir": "s3://bucket/work"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.from_collection([1]).print()
    told = r"penstock.working-dir is 's3://bucket/work', .*mounted disk; .* set execution.checkpointing.dir"
    with pytest.raises(ConfigurationError, match=told):
        env.execute()
