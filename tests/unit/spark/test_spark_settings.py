from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys

import pytest

from penstock.common import Configuration
from penstock.spark import class_archive
from penstock.spark.class_archive import archive_option, archive_path, make_in_background
from penstock.spark.session import quieten_py4j
from penstock.spark.spark_settings import choose_worker_python, settings_of

DAEMON = "spark.python.daemon.module"
OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """No Java of somebody else, no archive, workers with this Python."""
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", class_archive.OFF):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return monkeypatch


@pytest.mark.parametrize(("given", "then"), [(logging.NOTSET, logging.WARNING), (logging.DEBUG, logging.DEBUG)])
def test_py4j_is_quiet_unless_the_program_says_otherwise(given, then, monkeypatch):
    monkeypatch.setattr(logging.getLogger("py4j"), "level", given)
    quieten_py4j()
    assert logging.getLogger("py4j").level == then


def test_settings_of_the_job_win_over_the_defaults(alone):
    settings = settings_of(Configuration.from_dict({"spark.ui.enabled": "true", "parallelism.default": "2"}))
    assert settings["spark.ui.enabled"] == "true"
    assert not any(key.startswith("parallelism") for key in settings)


def test_what_spark_submit_was_given_wins_over_the_defaults_but_not_over_the_job(alone):
    alone.setenv("PYSPARK_GATEWAY_PORT", "1")
    submitted = {"spark.ui.enabled": "true", "spark.task.maxFailures": "3", "spark.jars": "a.jar"}
    settings = settings_of(Configuration.from_dict({"spark.task.maxFailures": "2"}), ["b.jar"], submitted)
    assert (settings["spark.ui.enabled"], settings["spark.task.maxFailures"]) == ("true", "2")
    assert settings["spark.stage.maxConsecutiveAttempts"] == "1" and settings["spark.jars"] == "a.jar,b.jar"


@pytest.mark.parametrize(("master", "has_daemon"), [("local", True), ("local[2]", True), ("spark://host:7077", False)])
def test_workers_of_this_machine_are_forked_from_a_process_that_has_penstock_loaded(alone, master, has_daemon):
    assert (DAEMON in settings_of(Configuration.from_dict({"spark.master": master}))) is has_daemon


def test_workers_with_another_python_are_spark_s_own(alone):
    config = Configuration.from_dict({"python.executable": "/some/other/python"})
    choose_worker_python(config)
    assert DAEMON not in settings_of(config)


def test_jars_of_the_job_are_added_to_those_of_the_settings(alone):
    settings = settings_of(Configuration.from_dict({"spark.jars": "a.jar"}), ["b.jar"])
    assert settings["spark.jars"] == "a.jar,b.jar"


def test_java_uses_an_archive_of_classes_once_there_is_one(alone):
    assert archive_option("-Xint") == ""
    path = archive_path("-Xint")
    assert path is not None and path != archive_path("-Xcomp")
    path.parent.mkdir()
    path.touch()
    assert archive_option("-Xint").startswith(f'"-XX:SharedArchiveFile={path}"')


def test_java_of_the_settings_has_no_archive_that_others_made(alone):
    assert settings_of(Configuration.from_dict({OPTIONS: "-Xint"}))[OPTIONS] == "-Xint"


def test_an_archive_can_be_switched_off(alone):
    alone.setenv(class_archive.OFF, "1")
    assert archive_path("-Xint") is None
    assert make_in_background("-Xint") is False


def test_an_archive_that_somebody_is_making_or_failed_to_make_is_left_alone(alone):
    path = archive_path("-Xint")
    path.parent.mkdir()
    path.with_suffix(".making").touch()
    assert make_in_background("-Xint") is False


def test_an_archive_that_was_begun_days_ago_and_never_finished_is_begun_again(alone):
    path = archive_path("-Xint")
    path.parent.mkdir()
    mark = path.with_suffix(".making")
    mark.touch()
    os.utime(mark, (0, 0))
    assert class_archive._is_mine_to_make(path)
    assert not class_archive._is_mine_to_make(path)


def test_what_workers_are_forked_from_has_no_threads():
    program = "import threading, penstock.spark.worker_daemon; print(threading.active_count(), sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", f"import sys; {program}"], stdout=subprocess.PIPE, text=True)
    assert loaded.stdout.startswith("1 ")
    assert not any(f"'{heavy}'" in loaded.stdout for heavy in ("pyarrow", "pandas", "starlette"))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_spark_on_one_machine_is_reached_from_there_only_and_asks_who_it_is(alone, master):
    settings = settings_of(Configuration.from_dict({"spark.master": master}))
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.authenticate"] == "true"
    own = settings_of(Configuration.from_dict({"spark.master": master, "spark.driver.host": "10.0.0.1"}))
    assert own["spark.driver.host"] == "10.0.0.1"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://host", "local-cluster[2,1,1024]"])
def test_spark_on_a_cluster_listens_where_its_executors_reach_it(alone, master):
    settings = settings_of(Configuration.from_dict({"spark.master": master}))
    assert not {"spark.driver.bindAddress", "spark.driver.host", "spark.authenticate"} & settings.keys()


def test_files_of_spark_and_java_on_one_machine_lie_where_the_next_process_removes_them(alone):
    here = settings_of(Configuration.from_dict({"spark.master": "local[2]"}))
    folder = here["spark.local.dir"]
    assert os.path.isdir(folder) and "penstock-files-" in folder
    assert f"-Djava.io.tmpdir={folder}" in here[OPTIONS]
    assert settings_of(Configuration.from_dict({"spark.local.dir": "/disk"}))["spark.local.dir"] == "/disk"
    on_cluster = settings_of(Configuration.from_dict({"spark.master": "spark://host:7077"}))
    assert "spark.local.dir" not in on_cluster and "java.io.tmpdir" not in on_cluster[OPTIONS]


def test_making_an_archive_comes_to_an_end_even_if_it_hangs():
    program = (
        "import threading\n"
        "from penstock.spark import class_archive\n"
        "class_archive._MAKING_LASTS_S = 1\n"
        "class_archive.make = lambda path, options: threading.Event().wait()\n"
        "class_archive.main('archive', '')\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == -signal.SIGALRM
