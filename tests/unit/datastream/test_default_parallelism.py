"""The parallelism of programs that set none."""

from __future__ import annotations

import sys

import pytest

from penstock.common import Configuration
from penstock.common.cores import machine_cores
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.default_parallelism import default_parallelism


class FakeContext:
    def __init__(self, master, **settings):
        self.master = master
        self._conf = settings


class FakeSession:
    def __init__(self, master, **settings):
        self.sparkContext = FakeContext(master, **settings)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    monkeypatch.delenv("PENSTOCK_CONF_DIR", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if "pyspark" in sys.modules:
        monkeypatch.setattr(sys.modules["pyspark"].SparkContext, "_active_spark_context", None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, machine_cores()),
        ({"execution.target": "inline"}, machine_cores()),
        ({"execution.target": "inline", "spark.master": "spark://host:7077"}, machine_cores()),
        ({"spark.master": "local[*]"}, machine_cores()),
        ({"spark.master": "local[7]"}, 7),
        ({"spark.master": "local"}, 1),
        ({"spark.master": "spark://host:7077"}, 1),
        ({"spark.master": "yarn"}, 1),
        ({"execution.target": "remote"}, 1),
        ({"parallelism.default": "5"}, 5),
        ({"parallelism.default": "5", "spark.master": "yarn"}, 5),
    ],
)
def test_parallelism_is_the_number_of_cores_on_one_machine(settings, expected):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    assert env.get_parallelism() == expected


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (FakeSession("local[3]"), 3),
        (FakeSession("local[32]", **{"spark.penstock.cores": "2"}), 2),
        (FakeSession("k8s://https://host"), 1),
    ],
)
def test_a_session_says_where_its_jobs_run(session, expected):
    assert default_parallelism(Configuration(), session, local=None) == expected


def test_spark_submit_is_for_clusters(monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 1


def test_operators_get_it_and_the_program_overrides_it():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"spark.master": "local[3]"}))
    mapped = env.from_collection([1]).map(str)
    assert mapped.transformation.parallelism == 3
    assert env.set_parallelism(2).get_parallelism() == 2


def test_default_local_parallelism_holds_for_later_environments_on_one_machine(monkeypatch):
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", None)
    earlier = StreamExecutionEnvironment.get_execution_environment()
    assert earlier.get_default_local_parallelism() == machine_cores()
    earlier.set_default_local_parallelism(6)
    later = StreamExecutionEnvironment.create_local_environment()
    assert (earlier.get_parallelism(), later.get_parallelism()) == (machine_cores(), 6)
    assert default_parallelism(Configuration.from_dict({"spark.master": "yarn"}), None, local=6) == 1
    assert StreamExecutionEnvironment.create_local_environment(4).get_parallelism() == 4
