"""Processes of a job are killed on real Spark, and its result is that of a job to which nothing happened.

A few kills only; `make chaos` does many, at random.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from chaos.all_round_job import Settings, build
from chaos.expected import differences, expected_lines, written_lines
from chaos.job_round import RoundPlan, run_round
from chaos.run import parse, plan_of

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_job_survives_the_death_of_workers_and_of_its_driver(tmp_path):
    plan = RoundPlan(
        records=6000,
        parallelisms=(2, 1),
        backend="hashmap",
        interval="100 ms",
        kills=("worker", "driver", "worker"),
    )
    outcome = run_round(plan, random.Random(5), tmp_path)
    assert outcome.faults == [], str(outcome)
    assert outcome.starts == 2 and "driver" in outcome.kills and len(outcome.kills) >= 2


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("epoch_records", ["7", "1000"])
def test_undisturbed_run_gives_what_is_expected(tmp_path, parallelism, epoch_records):
    config = Configuration.from_dict({"execution.target": "inline", "penstock.epoch.max-records": epoch_records})
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    build(env, Settings(str(tmp_path), records=150, idle_s=0.1))
    env.execute()
    assert written_lines(tmp_path) == expected_lines(150)


def test_lost_and_doubled_lines_are_found():
    expected = expected_lines(100)
    assert differences(expected, expected) == []
    wrong = [expected[0], *expected[2:], expected[5]]
    told = differences(expected, sorted(wrong))
    assert told == [f"lost: {expected[1]}", f"too much: {expected[5]}", f"1 lines lost, 1 too much, of {len(expected)}"]


def test_same_seed_gives_the_same_plan():
    parsed = parse(["--kill", "worker,driver,executor"])
    plans = [plan_of(parsed, random.Random(f"7-{number}")) for number in range(20)]
    assert plans == [plan_of(parsed, random.Random(f"7-{number}")) for number in range(20)]
    assert {plan.master for plan in plans} == {"local[2]", "local-cluster[2,1,1024]"}


def test_unknown_victim_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--kill", "cat"])
    assert "--kill: cat is not known; there are worker, driver, executor, point, stop, pause" in capsys.readouterr().err
