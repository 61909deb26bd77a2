from __future__ import annotations

import ast
import inspect
import re
import warnings
from pathlib import Path

import pytest

import penstock
from penstock.common import ConfigOption, Configuration, ExecutionConfig, InputDependencyConstraint, config_keys
from penstock.common.config_checks import check_keys
from penstock.common.config_file import load_config_file
from penstock.common.config_keys import find_option
from penstock.common.exceptions import ConfigurationError
from penstock.common.execution_mode import ExecutionMode


def test_defaults_are_flinks():
    config = Configuration()
    assert config.get(config_keys.AUTO_WATERMARK_INTERVAL) == 200
    assert config.get(config_keys.CHECKPOINT_TIMEOUT) == 600_000
    assert config.get(config_keys.CHECKPOINT_INTERVAL) is None
    assert config.get(config_keys.EXPONENTIAL_MULTIPLIER) == 1.5
    assert config.get(config_keys.BUFFER_TIMEOUT) == 100
    assert config.get(config_keys.HEARTBEAT_TIMEOUT) == 50_000
    assert config.get(config_keys.TARGET) == "spark"


def test_every_default_fits_its_type_and_no_old_name_is_used_twice():
    old_keys = [old for option in config_keys.KNOWN_OPTIONS.values() for old in option.old_keys]
    assert len(old_keys) == len(set(old_keys)) and not set(old_keys) & set(config_keys.KNOWN_OPTIONS)
    for option in config_keys.KNOWN_OPTIONS.values():
        assert option.default is None or option.parse(option.default) == option.default


def test_known_keys_and_keys_for_spark_or_flinks_processes_pass_in_silence():
    config = Configuration.from_dict(
        {"parallelism.default": "2", "spark.executor.memory": "1g", "taskmanager.memory.process.size": "1g"}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_keys(config)


SOURCE = Path(penstock.__file__).parent
#: Where a key may be set or shown though nothing depends on it.
SETTERS = {"execution_config.py", "checkpoint_config.py", "config_keys.py"}


def readers_of(name: str, key: str, code: dict[Path, str]) -> list[str]:
    return [path.name for path, text in code.items() if re.search(rf"\b{name}\b", text) or f'"{key}"' in text]


def test_every_key_is_read_or_listed_as_one_without_effect():
    code = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.name != "config_keys.py"}
    options = {name: each for name, each in vars(config_keys).items() if isinstance(each, ConfigOption)}
    by_setters_only = {
        each.key for name, each in options.items() if not set(readers_of(name, each.key, code)) - SETTERS
    }
    # Read through `ExecutionConfig.get_auto_watermark_interval`, by the environment and the streams.
    by_setters_only.remove(config_keys.AUTO_WATERMARK_INTERVAL.key)
    assert by_setters_only - set(config_keys.WITHOUT_EFFECT) == set(), "make them work, or list them"
    assert set(config_keys.WITHOUT_EFFECT) <= set(config_keys.KNOWN_OPTIONS)


def test_every_key_that_takes_effect_is_described():
    missing = [key for key, option in config_keys.KNOWN_OPTIONS.items() if not option.description]
    assert [key for key in missing if key not in config_keys.WITHOUT_EFFECT] == []


def test_setting_a_key_without_effect_is_reported_unless_it_is_the_default():
    with pytest.warns(UserWarning, match="'python.fn-execution.bundle.size' has no effect: records are not bundled"):
        check_keys(Configuration.from_dict({"python.fn-execution.bundle.size": "5000"}))
    with pytest.warns(UserWarning) as shown:
        check_keys(Configuration.from_dict({"execution.checkpointing.unaligned": "true"}))
    assert "has no effect: epochs have nothing to align" in str(shown[-1].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_keys(Configuration.from_dict({"execution.checkpointing.mode": "EXACTLY_ONCE"}))


def test_every_setting_of_an_execution_config_has_a_known_key():
    config = Configuration()
    for name, method in inspect.getmembers(ExecutionConfig(config), inspect.ismethod):
        if name.startswith(("enable_", "disable_")):
            method()
    ExecutionConfig(config).set_execution_mode(ExecutionMode.BATCH)
    ExecutionConfig(config).set_default_input_dependency_constraint(InputDependencyConstraint.ALL)
    with pytest.warns(UserWarning) as shown:
        check_keys(config)
    assert {str(each.message).partition(" has no effect: ")[0] for each in shown} >= {
        "configuration key 'execution.mode'",
        "configuration key 'execution.input-dependency-constraint'",
    }
    assert [str(each.message) for each in shown if "unknown" in str(each.message)] == []


def test_an_unknown_key_is_named_with_the_nearest_known_one():
    config = Configuration.from_dict({"paralelism.default": "2"})
    with pytest.warns(UserWarning, match=r"'paralelism.default', did you mean 'parallelism.default'\?"):
        check_keys(config)
    with pytest.warns(UserWarning, match=r"unknown configuration key 'zzz'; it has no effect"):
        check_keys(Configuration.from_dict({"zzz": "2"}))


def test_a_key_next_to_a_known_one_is_reported_also_in_flinks_families():
    with pytest.warns(UserWarning, match=r"'rest.prot', did you mean 'rest.port'\?"):
        check_keys(Configuration.from_dict({"rest.prot": "8082"}))


def test_an_unknown_key_warns_once():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            check_keys(Configuration.from_dict({"only.once": "2"}))
    assert len(shown) == 1


def test_an_old_name_moves_its_value_to_the_new_one():
    config = Configuration.from_dict({"state.backend": "rocksdb", "restart-strategy": "none"})
    with pytest.warns(UserWarning) as shown:
        check_keys(config)
    assert [str(warning.message).split(";")[0] for warning in shown] == [
        "configuration key 'restart-strategy' is now called 'restart-strategy.type'",
        "configuration key 'state.backend' is now called 'state.backend.type'",
    ]
    assert config.to_dict() == {"state.backend.type": "rocksdb", "restart-strategy.type": "none"}


def test_a_new_name_wins_over_an_old_one():
    config = Configuration.from_dict({"state.backend": "rocksdb", "state.backend.type": "hashmap"})
    with pytest.warns(UserWarning):
        check_keys(config)
    assert config.to_dict() == {"state.backend.type": "hashmap"}


def test_a_bad_value_of_a_known_key_is_refused():
    with pytest.raises(ConfigurationError, match=r"execution.checkpointing.interval: 'often' is not a duration"):
        check_keys(Configuration.from_dict({"execution.checkpointing.interval": "often"}))


def test_options_are_found_by_either_name():
    assert find_option("state.backend") is config_keys.STATE_BACKEND is find_option("state.backend.type")
    assert find_option("nothing") is None


def test_config_file_may_be_nested_or_flat(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "parallelism:\n  default: 4\nrest.port: 8082\n# a comment\nweb:\n  submit:\n    enable: off\n"
        "execution.checkpointing:\n  interval: 1 min\npipeline:\n  jars: [a.jar, 'b;c.jar']\n  name:\nempty: ~\n"
    )
    expected = {
        "parallelism.default": "4",
        "rest.port": "8082",
        "web.submit.enable": "off",
        "execution.checkpointing.interval": "1 min",
        "pipeline.jars": "a.jar;'b;c.jar'",
    }
    assert load_config_file(file) == load_config_file(tmp_path) == expected
    jars = Configuration.from_dict(expected).get(config_keys.JARS)
    assert jars == ["a.jar", "b;c.jar"]


def test_empty_config_file_has_no_keys(tmp_path):
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert load_config_file(tmp_path) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [1", "is not valid YAML"),
        ("- a\n- b\n", "must hold keys and values"),
        ("words", "must hold keys and values"),
    ],
)
def test_broken_config_file_names_the_file(tmp_path, content, message):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(ConfigurationError, match=rf"config\.yaml.*{message}"):
        load_config_file(tmp_path)


def test_missing_config_file_names_the_file(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot read the configuration file .*nope\.yaml: No such file"):
        load_config_file(tmp_path / "nope.yaml")


def test_execution_config_is_a_live_view():
    config = Configuration()
    view = ExecutionConfig(config)
    assert view.set_parallelism(4).set_max_parallelism(64) is view
    config.set_string("pipeline.auto-watermark-interval", "1 s")
    assert config.to_dict()["parallelism.default"] == "4" and view.get_max_parallelism() == 64
    assert view.get_auto_watermark_interval() == 1000
    assert view == ExecutionConfig(Configuration(config)) and hash(view) == hash(ExecutionConfig(Configuration(config)))


def test_parallelism_can_be_unset_and_must_be_positive():
    view = ExecutionConfig()
    assert view.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert view.set_parallelism(3).set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 3
    assert view.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == -1
    with pytest.raises(ValueError, match="parallelism must be at least 1, got 0"):
        view.set_parallelism(0)
    for wrong in (0, 32769):
        with pytest.raises(ValueError, match=f"between 1 and 32768, got {wrong}"):
            view.set_max_parallelism(wrong)


def test_job_parameters_come_back_as_text():
    view = ExecutionConfig()
    assert view.get_global_job_parameters() == {}
    view.set_global_job_parameters({"a": 1, "url": "http://h:80/x,y", "q": "it's"})
    assert view.get_global_job_parameters() == {"a": "1", "url": "http://h:80/x,y", "q": "it's"}
    other = ExecutionConfig(Configuration.from_dict(view._configuration.to_dict()))
    assert other.get_global_job_parameters() == view.get_global_job_parameters()


@pytest.mark.parametrize(
    ("name", "getter", "default"),
    [
        ("auto_generated_uids", "has_auto_generated_uids_enabled", True),
        ("object_reuse", "is_object_reuse_enabled", False),
        ("closure_cleaner", "is_closure_cleaner_enabled", True),
        ("force_kryo", "is_force_kryo_enabled", False),
        ("force_avro", "is_force_avro_enabled", False),
    ],
)
def test_switches_go_on_and_off(name, getter, default):
    view = ExecutionConfig()
    assert getattr(view, getter)() is default
    assert getattr(getattr(view, f"enable_{name}")(), getter)() is True
    assert getattr(getattr(view, f"disable_{name}")(), getter)() is False


def test_generic_types_are_allowed_until_disabled():
    view = ExecutionConfig()
    assert not view.has_generic_types_disabled()
    assert view.disable_generic_types().has_generic_types_disabled()
    assert not view.enable_generic_types().has_generic_types_disabled()


def test_times_are_milliseconds():
    view = ExecutionConfig()
    assert (view.get_task_cancellation_interval(), view.get_task_cancellation_timeout()) == (30_000, 180_000)
    assert view.set_task_cancellation_interval(5).get_task_cancellation_interval() == 5
    assert view.set_task_cancellation_timeout(0).get_task_cancellation_timeout() == 0
    assert view.set_latency_tracking_interval(-1).get_latency_tracking_interval() == 0
    assert view.set_use_snapshot_compression(True).is_use_snapshot_compression()
    for setter in (view.set_auto_watermark_interval, view.set_task_cancellation_timeout):
        with pytest.raises(ValueError, match="cannot be negative, got -1 ms"):
            setter(-1)
    assert (view.get_registered_kryo_types(), view.get_registered_pojo_types()) == ([], [])
    assert view.get_default_kryo_serializer_classes() == {}


# --- every key takes effect, or says that it does not ----------------------------------------------------------------

THROUGH_A_GETTER = {"AUTO_WATERMARK_INTERVAL": "get_auto_watermark_interval"}
"""Keys that are read only through PyFlink's `ExecutionConfig`, which alone would be no effect."""


def names_used_by_module() -> dict[str, set[str]]:
    root = Path(penstock.__file__).parent
    return {
        str(path.relative_to(root)): {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute | ast.Name)
        }
        for path in root.rglob("*.py")
        if path.name not in ("config_keys.py", "execution_config.py")
    }


def test_every_key_is_read_somewhere_or_listed_as_without_effect():
    used = set().union(*names_used_by_module().values())
    options = {name: each for name, each in vars(config_keys).items() if isinstance(each, ConfigOption)}
    without_reader = {each.key for name, each in options.items() if THROUGH_A_GETTER.get(name, name) not in used}
    assert without_reader <= set(config_keys.WITHOUT_EFFECT), "nobody reads these keys, and they are not listed"
    assert set(config_keys.WITHOUT_EFFECT) <= set(config_keys.KNOWN_OPTIONS)


def test_what_is_listed_as_without_effect_is_read_by_nobody_who_runs_jobs():
    """The API may hand such a setting back to who has set it; nothing else may depend on it."""
    listed = {
        name for name, each in vars(config_keys).items() if getattr(each, "key", None) in config_keys.WITHOUT_EFFECT
    }
    readers = {
        (module, name)
        for module, names in names_used_by_module().items()
        for name in names & listed
        if module.split("/")[0] in ("graph", "runtime", "checkpoint", "jobmaster", "spark", "cluster")
    }
    assert readers == set()
