from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.config_file import read_config
from penstock.common.exceptions import ConfigurationError


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_nested_and_flat_keys_give_the_same_settings(config):
    config.write_text("restart-strategy:\n  type: fixed-delay\n  fixed-delay:\n    attempts: 3\n")
    nested = read_config(config)
    config.write_text("restart-strategy.type: fixed-delay\nrestart-strategy.fixed-delay.attempts: 3\n")
    assert nested == read_config(config) == {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
    }  # fmt: skip


@pytest.mark.parametrize("value", ["10:30", "on", "1e3", "true", "10 s", "007"])
def test_values_are_kept_as_written(config, value):
    config.write_text(f"key: {value}\n")
    assert read_config(config) == {"key": value}


def test_lists_are_joined_as_flink_writes_them(config):
    config.write_text("pipeline.jars: [a.jar, b.jar]\n")
    assert read_config(config) == {"pipeline.jars": "a.jar;b.jar"}


def test_folder_means_its_config_yaml(config):
    config.write_text("parallelism.default: 4\n")
    assert read_config(config.parent) == {"parallelism.default": "4"}


def test_environment_names_the_folder_when_the_command_does_not(config, monkeypatch):
    config.write_text("parallelism.default: 4\n")
    monkeypatch.setenv("PENSTOCK_CONF_DIR", str(config.parent))
    assert read_config(None) == {"parallelism.default": "4"}


def test_without_any_location_or_content_there_are_no_settings(config, monkeypatch):
    monkeypatch.delenv("PENSTOCK_CONF_DIR", raising=False)
    config.write_text("# nothing\n")
    assert (read_config(None), read_config(config)) == ({}, {})


def test_missing_file_is_named(config):
    with pytest.raises(ConfigurationError, match=r"cannot read the configuration .*config.yaml: No such file"):
        read_config(config)


@pytest.mark.parametrize(
    ("content", "message"), [("a: [", "is not valid YAML"), ("- a\n- b\n", "must hold 'key: value' pairs.*a list")]
)
def test_what_is_no_configuration_is_refused(config, content, message):
    config.write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        read_config(config)
