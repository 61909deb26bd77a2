"""What a user sees when a job fails, and how jobs come back; the same on both targets."""

from __future__ import annotations

import linecache
import os
import re
from collections import UserList
from pathlib import Path

import pytest

from penstock.common import RestartStrategies
from penstock.common.exceptions import InvalidProgramError, JobExecutionError, UserFunctionError
from penstock.datastream import FlatMapFunction

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "penstock.epoch.interval": "1 ms",
}


def first_time(folder: Path) -> bool:
    """True once, whatever process asks."""
    try:
        (folder / "was-here").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def test_failure_names_job_operator_subtask_and_record(run_target):
    env = run_target(2)
    env.from_collection([1, 2, 0, 4]).rebalance().map(lambda number: 12 // number).name("divide").print()
    with pytest.raises(UserFunctionError) as caught:
        env.execute("division")
    error = caught.value
    assert re.match(
        r"job 'division' failed in operator 'divide', subtask [12]/2, at record 0: ZeroDivisionError: integer division",
        str(error),
    )
    assert (error.operator, error.record, error.job_name) == ("divide", "0", "division")
    assert error.subtask in (0, 1)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "12 // number" in error.user_traceback
    assert "py4j" not in str(error) and "pyspark" not in str(error)


def test_failure_in_a_fused_generator_names_its_operator(run_target):
    def letters(word):
        yield word[0]
        raise KeyError("no more")

    env = run_target()
    env.from_collection(["ab"]).map(lambda word: word.upper()).flat_map(letters).name("letters").map(len).print()
    with pytest.raises(UserFunctionError, match=r"operator 'letters', subtask 1/1, at record 'AB': KeyError: "):
        env.execute()


def test_failure_behind_a_key_names_its_operator(run_target):
    env = run_target(2)
    env.from_collection([("a", 1), ("a", "b")]).key_by(lambda p: p[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).name(
        "total"
    ).print()
    with pytest.raises(UserFunctionError, match=r"operator 'total', subtask \d/2, at record \('a', 'b'\): TypeError"):
        env.execute()


def test_failure_of_a_key_selector_is_the_users_too(run_target):
    env = run_target(2)
    env.from_collection([{"name": "a"}, {}]).map(lambda d: d).name("clean").key_by(lambda d: d["name"]).map(len).print()
    with pytest.raises(UserFunctionError, match=r"KeyError: 'name'"):
        env.execute()


def test_failure_in_open_is_reported(run_target):
    class Broken(FlatMapFunction):
        def open(self, runtime_context):
            raise OSError("no such thing")

        def flat_map(self, value):
            yield value

    env = run_target()
    env.from_collection([1]).flat_map(Broken()).name("broken").print()
    with pytest.raises(UserFunctionError, match=r"failed in operator 'broken', subtask 1/1: OSError: no such thing"):
        env.execute()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_unhashable_key_is_explained(run_target, parallelism):
    env = run_target(parallelism)
    env.from_collection([1]).key_by(lambda value: UserList([value])).map(lambda value: value).print()
    message = "is of type UserList, which is not hashable; key_by needs a key that can be compared"
    with pytest.raises(JobExecutionError, match=re.escape(message)):
        env.execute()


def test_own_exception_class_arrives_as_the_cause(run_target):
    class OutOfCoffee(Exception):
        pass

    def work(_):
        raise OutOfCoffee("the pot is empty")

    env = run_target()
    env.from_collection([1]).map(work).print()
    with pytest.raises(UserFunctionError, match="OutOfCoffee: the pot is empty") as caught:
        env.execute()
    assert type(caught.value.__cause__).__name__ == "OutOfCoffee"


def test_failure_ends_the_iterator_of_the_values(run_target):
    env = run_target()
    collected = env.from_collection([1, 0]).map(lambda number: 1 // number).execute_and_collect()
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        list(collected)


def test_custom_partitioner_with_a_bad_answer_is_refused(run_target):
    env = run_target(2)
    env.from_collection([1]).partition_custom(lambda key, n: n, lambda value: value).map(lambda value: value).print()
    with pytest.raises(JobExecutionError, match="the custom partitioner returned 2 for key 1; it must return a number"):
        env.execute()


# --- restarts --------------------------------------------------------------------------------------------------------


def test_job_restarts_and_ends_as_if_nothing_had_happened(run_target, tmp_path, capsys):
    env = run_target(2, {**RESTARTS, "penstock.epoch.max-records": "2"})

    def fail_once(number):
        if number == 5 and first_time(tmp_path):
            raise ValueError("five")
        return number

    env.from_collection(range(1, 8)).map(fail_once).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).print()
    env.execute()
    shown = [int(line.partition("> ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert sorted(shown) == [1, 2, 4, 6, 9, 12, 16]


def test_job_that_keeps_failing_fails_when_its_restarts_are_used_up(run_target, tmp_path):
    env = run_target()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 1))
    path = tmp_path / "calls"

    def fail(_):
        with path.open("a") as file:
            file.write("x")
        raise ValueError("always")

    env.from_collection([1]).map(fail).print()
    with pytest.raises(UserFunctionError, match="ValueError: always"):
        env.execute()
    assert path.read_text() == "xxx"


@pytest.mark.spark
def test_worker_that_dies_fails_the_job(on_spark):
    env = on_spark()
    env.from_collection([1]).map(lambda _: os._exit(7)).print()
    told = r"job 'crash' on Spark: epoch 1 failed: worker 0 \(process \d+ on .*\) is gone: it was killed"
    with pytest.raises(JobExecutionError, match=told) as caught:
        env.execute("crash")
    assert not isinstance(caught.value, (UserFunctionError, InvalidProgramError))
    assert caught.value.job_name == "crash"


@pytest.mark.spark
def test_job_recovers_when_a_worker_dies(on_spark, tmp_path, capsys):
    """No strategy is set: a bounded job shows the first error of a function, but this is none."""
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "restart-strategy.exponential-delay.initial-backoff": "1 ms",
    }
    env = on_spark(2, {**settings, "penstock.epoch.max-records": "2"})

    def die_once(number):
        if number == 5 and first_time(tmp_path):
            os._exit(7)
        return number

    env.from_collection(range(1, 8)).map(die_once).key_by(lambda n: n % 2).reduce(lambda a, b: a + b).print()
    env.execute()
    shown = [int(line.partition("> ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert sorted(shown) == [1, 2, 4, 6, 9, 12, 16]


def test_failure_in_a_cell_of_a_notebook_shows_its_line(run_target):
    """Only the process of the notebook knows the text of a cell; there is no file that workers could read."""
    name, text = "<ipython-input-7-abc>", "def invert(number):\n    return 12 // number\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    cell: dict = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), cell)
    env = run_target(1)
    env.from_collection([0]).map(cell["invert"]).print()
    with pytest.raises(UserFunctionError) as caught:
        env.execute()
    shown = f'  File "{name}", line 2, in invert\n    return 12 // number\n'
    assert shown in str(caught.value) and shown in caught.value.user_traceback
