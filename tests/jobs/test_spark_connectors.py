"""Streaming DataFrames as sources and Spark's writers as sinks, in whole jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.common import Row, Types

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("spark_connectors_program.py")
PATIENCE_S = 240
ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json"])
def test_rows_are_written_by_spark_and_read_again(spark, run_target, tmp_path, format):
    out, env = str(tmp_path / "out"), run_target(2)
    rows = env.from_sequence(1, 20).map(lambda number: Row(number, f"n{number % 2}"), ROWS)
    rows.sink_to_spark(format, {"path": out}, partition_by="name", staging_dir=str(tmp_path / "staging"))
    env.execute("written")
    found = spark.read.schema("id long, name string").format(format).load(out)
    assert sorted((row.id, row.name) for row in found.collect()) == [(n, f"n{n % 2}") for n in range(1, 21)]


class Life:
    """A process that runs the program, from the newest checkpoint on."""

    def __init__(self, folder):
        self.folder = folder
        newest = max(self.checkpoints(), key=lambda path: path.stat().st_mtime_ns, default=None)
        arguments = [folder / "inbox", folder / "out", folder / "checkpoints"]
        recover = [] if newest is None else [newest.parent]
        self._log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, *map(str, [*arguments, *recover])], stdout=self._log, stderr=self._log
        )

    def checkpoints(self):
        return set(self.folder.glob("checkpoints/*/chk-*/_metadata"))

    def wait_until(self, is_so):
        limit = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < limit, (self.folder / "log").read_text()
            time.sleep(0.05)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()


def written(folder):
    files = folder.glob("out/*.json")
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_row_is_written_once_although_the_driver_is_killed(tmp_path):
    (tmp_path / "inbox").mkdir()
    for life_number, least in enumerate([1, 11, 30]):
        for start in range(life_number * 10, life_number * 10 + 10, 5):
            lines = "".join(json.dumps({"id": number}) + "\n" for number in range(start, start + 5))
            (tmp_path / f"part-{start}").write_text(lines)
            (tmp_path / f"part-{start}").rename(tmp_path / "inbox" / f"part-{start}")
        life = Life(tmp_path)
        try:
            # Killed as soon as something new is seen: in the middle of batches, checkpoints and commits.
            life.wait_until(lambda least=least: len(written(tmp_path)) >= least)
        finally:
            life.kill()
    assert written(tmp_path) == list(range(30))
