"""Parts of a job that exchange nothing fail alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common import Configuration, Types
from penstock.common.exceptions import JobExecutionError
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.functions import RichFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.graph.job_graph import build_job_graph
from penstock.graph.regions import pipelined_regions


class FailsOften(MapFunction):
    """Fails at certain records, once for each: a file remembers it."""

    def __init__(self, folder: str, at: set[int]):
        self._folder, self._at = folder, at

    def map(self, value):
        mark = Path(self._folder, str(value))
        if value in self._at and not mark.exists():
            mark.touch()
            raise RuntimeError(f"stumbled at {value}")
        return value


class Opened(MapFunction, RichFunction):
    """Leaves a mark each time it is opened."""

    def __init__(self, folder: str):
        self._folder = folder

    def open(self, runtime_context):
        number = len(list(Path(self._folder).iterdir()))
        Path(self._folder, f"opened-{number}").touch()

    def map(self, value):
        return value


class RunningSum(MapFunction):
    def open(self, runtime_context):
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def map(self, value):
        self._sum.update((self._sum.value() or 0) + value)
        return self._sum.value()


def environment(target: str, **settings: str) -> StreamExecutionEnvironment:
    config = Configuration()
    config.set_string("execution.target", target)
    config.set_string("penstock.epoch.max-records", "50")
    config.set_string("restart-strategy.type", "fixed-delay")
    config.set_string("restart-strategy.fixed-delay.attempts", "10")
    config.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    for key, value in settings.items():
        config.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(config)


def two_regions(env: StreamExecutionEnvironment, tmp_path: Path, fails_at: set[int]) -> None:
    for name in ("failures", "opened"):
        (tmp_path / name).mkdir(exist_ok=True)
    rough = env.from_sequence(1, 1000).map(FailsOften(str(tmp_path / "failures"), fails_at))
    rough.key_by(lambda value: value % 3).map(RunningSum()).map(lambda value: f"rough {value}").print()
    smooth = env.from_sequence(1, 1000).map(Opened(str(tmp_path / "opened")))
    smooth.key_by(lambda value: value % 3).map(RunningSum()).map(lambda value: f"smooth {value}").print()


def expected(name: str) -> list[str]:
    sums, lines = {0: 0, 1: 0, 2: 0}, []
    for value in range(1, 1001):
        sums[value % 3] += value
        lines.append(f"{name} {sums[value % 3]}")
    return sorted(lines)


def shown(text: str, name: str) -> list[str]:
    return sorted(line for line in text.splitlines() if line.startswith(name))


def test_regions_are_what_is_connected():
    env = StreamExecutionEnvironment.get_execution_environment()
    first, second, third = (env.from_sequence(1, 9) for _ in range(3))
    first.union(second.key_by(lambda v: v).map(lambda v: v)).print()
    third.rebalance().map(lambda v: v).print()
    regions = pipelined_regions(build_job_graph(env.get_stream_graph()))
    assert len(regions) == 2
    assert sorted(vertex for region in regions for vertex in region) == list(range(max(map(max, regions)) + 1))


@pytest.mark.parametrize("target", ["inline", "spark"])
def test_region_that_fails_ten_times_does_not_stop_the_other(target, tmp_path, capfd, request):
    if target == "spark":
        request.getfixturevalue("spark")
    env = environment(target)
    two_regions(env, tmp_path, set(range(50, 1000, 100)))
    client = env.execute_async("two regions")
    client.get_job_execution_result().result()
    output = capfd.readouterr().out
    assert shown(output, "rough") == expected("rough"), "each result once, although the region went back ten times"
    assert shown(output, "smooth") == expected("smooth")
    assert client.master.restarts == 10
    assert len(client.master.failures) == 10
    marks = [path.name for path in (tmp_path / "opened").iterdir()]
    assert marks == ["opened-0"], "the other region was never opened again"


def test_full_failover_takes_all_regions_back(tmp_path, capfd):
    env = environment("inline", jobmanager__execution__failover_strategy="full")
    two_regions(env, tmp_path, {500})
    client = env.execute_async("two regions")
    client.get_job_execution_result().result()
    output = capfd.readouterr().out
    assert shown(output, "rough") == expected("rough") and shown(output, "smooth") == expected("smooth")
    assert client.master.restarts == 1


def test_region_that_fails_for_good_ends_the_job(tmp_path):
    env = environment("inline", restart_strategy__type="none")
    two_regions(env, tmp_path, {500})
    with pytest.raises(JobExecutionError, match="stumbled at 500"):
        env.execute("two regions")


def test_unknown_failover_strategy_is_refused(tmp_path):
    env = environment("inline", jobmanager__execution__failover_strategy="everything")
    two_regions(env, tmp_path, set())
    with pytest.raises(ValueError, match="'everything' is not known; use region or full"):
        env.execute()


def run_with_a_stop_in_between(tmp_path: Path, parallelism: int) -> None:
    env = environment("inline")
    two_regions(env, tmp_path, {500})
    client = env.execute_async("before")
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    client.get_job_execution_result().result()
    again = environment("inline", execution__state_recovery__path=path)
    again.set_parallelism(parallelism)
    two_regions(again, tmp_path, {500})
    again.execute("after")


def test_job_with_regions_continues_from_its_savepoint(tmp_path, capfd):
    run_with_a_stop_in_between(tmp_path, parallelism=1)
    output = capfd.readouterr().out
    assert shown(output, "rough") == expected("rough") and shown(output, "smooth") == expected("smooth")


def test_job_with_regions_continues_at_another_parallelism(tmp_path, capfd):
    run_with_a_stop_in_between(tmp_path, parallelism=3)
    output = "\n".join(line.split("> ")[-1] for line in capfd.readouterr().out.splitlines())
    totals = {f"{sum(value for value in range(1, 1001) if value % 3 == key)}" for key in range(3)}
    for name in ("rough", "smooth"):
        assert len(shown(output, name)) == 1000
        assert {f"{name} {total}" for total in totals} <= set(shown(output, name))
