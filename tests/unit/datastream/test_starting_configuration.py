from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.launch import Launch, launching


@pytest.fixture
def conf_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CONF_DIR", str(tmp_path))
    (tmp_path / "config.yaml").write_text("parallelism.default: 401\npipeline:\n  name: from the file\n")
    return tmp_path


def environment(**settings: str) -> StreamExecutionEnvironment:
    config = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
    return StreamExecutionEnvironment.get_execution_environment(config)


def test_a_script_started_by_python_reads_the_file_of_the_conf_dir(conf_dir):
    env = environment()
    assert env.get_parallelism() == 401
    assert env.get_configuration().get_string("pipeline.name", "") == "from the file"


def test_code_is_stronger_than_the_file(conf_dir):
    env = environment(parallelism_default="2")
    assert env.get_parallelism() == 2
    assert env.set_parallelism(3).get_parallelism() == 3
    assert env.get_configuration().get_string("pipeline.name", "") == "from the file"


def test_a_starter_has_read_the_file_it_was_told_to_and_no_other_one_is_read(conf_dir):
    with launching(Launch(configuration={"pipeline.name": "from the command"})):
        env = environment()
    assert env.get_parallelism() != 401
    assert env.get_configuration().get_string("pipeline.name", "") == "from the command"


def test_without_a_conf_dir_there_are_no_settings(monkeypatch):
    monkeypatch.delenv("PENSTOCK_CONF_DIR", raising=False)
    assert len(environment().get_configuration()) == 0


def test_a_conf_dir_without_a_file_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"cannot read the configuration file .*config\.yaml: No such file"):
        environment()


def test_the_configuration_of_an_environment_is_live():
    env = environment()
    env.get_configuration().set_string("parallelism.default", "5").set_string("execution.runtime-mode", "BATCH")
    assert env.get_parallelism() == 5
    assert env.runtime_mode().name == "BATCH"
