"""What functions print and log reaches the program, wherever they run."""

from __future__ import annotations

import logging
import sys

import pytest

from penstock.datastream.functions import MapFunction

BOTH_MODES = pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])


class Talking(MapFunction):
    def map(self, value):
        print("printed", value)
        print("complained", value, file=sys.stderr)
        logging.getLogger("fish").info("logged %d", value)
        logging.getLogger("fish").debug("too little to tell")
        return value

    def close(self):
        print("closed")


@BOTH_MODES
def test_prints_and_records_come_once_with_the_level_of_the_program(run_target, capfd, caplog, mode):
    caplog.set_level(logging.INFO)
    env = run_target(parallelism=2, settings={"execution.runtime-mode": mode})
    env.from_sequence(1, 50).map(Talking()).filter(lambda value: value < 0).print()
    client = env.execute_async("talking")
    client.get_job_execution_result().result()
    out, err = capfd.readouterr()
    assert sorted(line for line in out.splitlines() if line.startswith("printed")) == sorted(
        f"printed {value}" for value in range(1, 51)
    )
    assert out.splitlines().count("closed") == 2
    assert sum(line.startswith("complained") for line in err.splitlines()) == 50
    told = [record for record in caplog.records if record.name == "fish"]
    assert sorted(record.getMessage() for record in told) == sorted(f"logged {value}" for value in range(1, 51))
    assert {record.threadName.rpartition(" ")[2] for record in told} == {"(1/2)#0", "(2/2)#0"}
    assert {record.job_name for record in told} == {"talking"}
    assert sum("logged" in text for _, text in client.master.log.lines()) == 50
