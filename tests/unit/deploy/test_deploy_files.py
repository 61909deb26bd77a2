"""The container file and the Kubernetes manifest: their parts fit together, and what they name exists."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from penstock.cli import main
from penstock.common import Configuration
from penstock.common.config_checks import check_keys
from penstock.common.config_file import load_config_file

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "deploy" / "kubernetes.yaml"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
pytestmark = pytest.mark.skipif(not MANIFEST.exists(), reason="the folder deploy is not here")


@pytest.fixture(scope="module")
def objects():
    return {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text())}


@pytest.fixture(scope="module")
def container(objects):
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


@pytest.fixture
def job(objects, tmp_path):
    for name, content in objects["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(content)
    return tmp_path


def settings_of(container):
    words = container["command"]
    return dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--conf")


def test_settings_of_the_manifest_are_known(job):
    settings = load_config_file(job / "config.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # An unknown key, or one without effect, is a warning.
        check_keys(Configuration.from_dict(settings))
    assert settings["penstock.job-id"] and settings["execution.checkpointing.dir"]


def test_job_of_the_manifest_can_be_built_with_its_settings(job, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CONF_DIR", str(job))
    asked = CliRunner().invoke(main, ["info", str(job / "job.py")])
    assert asked.exit_code == 0, asked.output
    assert "parallelism 4" in asked.output and "Keyed Reduce" in asked.output


def test_parts_of_the_manifest_name_each_other(objects, container):
    deployment = objects["Deployment"]["spec"]
    pod = deployment["template"]
    assert deployment["selector"]["matchLabels"] == pod["metadata"]["labels"] == objects["Service"]["spec"]["selector"]
    assert pod["spec"]["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert objects["RoleBinding"]["roleRef"]["name"] == objects["Role"]["metadata"]["name"]
    assert objects["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": pod["spec"]["serviceAccountName"]}]
    [volume], [mount] = pod["spec"]["volumes"], container["volumeMounts"]
    assert volume["name"] == mount["name"] and volume["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    folder, _, file = container["command"][-1].rpartition("/")
    assert folder == mount["mountPath"] and file in objects["ConfigMap"]["data"]
    assert {"name": "PENSTOCK_CONF_DIR", "value": folder} in container["env"]


def test_executors_reach_the_driver_where_it_listens(objects, container):
    settings, service = settings_of(container), objects["Service"]
    assert settings["spark.driver.host"] == f"{service['metadata']['name']}.$(POD_NAMESPACE).svc"
    ports = {str(each["port"]) for each in service["spec"]["ports"]}
    assert {settings["spark.driver.port"], settings["spark.driver.blockManager.port"]} == ports
    assert service["spec"]["clusterIP"] == "None"  # Without one, all ports can be reached by the name.
    used = {name for value in settings.values() for name in re.findall(r"\$\((\w+)\)", value)}
    assert used <= {each["name"] for each in container["env"]}
    assert settings["spark.kubernetes.container.image"] == container["image"]


def test_slots_are_enough_for_the_job(container, job):
    settings = settings_of(container)
    slots = int(settings["spark.executor.instances"]) * int(settings["spark.executor.cores"])
    assert slots >= int(load_config_file(job / "config.yaml")["parallelism.default"])


@pytest.mark.parametrize(
    "command",
    [line.partition(" penstock ")[2] for line in DOCKERFILE.read_text().splitlines() if "docker run" in line]
    if DOCKERFILE.exists()
    else [],
)
def test_commands_of_the_container_file_exist(command):
    program, *words = shlex.split(command)
    if program == "penstock":
        options = {"-D", *(word for word in words if word.startswith("--"))}
        verbs = words[: next(at for at, word in enumerate([*words, "-"]) if word.startswith("-"))]
        offered = CliRunner().invoke(main, [*verbs, "--help"]).output
        assert all(option in offered for option in options)
        settings = [word.partition("=") for at, word in enumerate(words) if words[at - 1] == "-D"]
        check_keys(Configuration.from_dict({key: value for key, _, value in settings}))
        # A job manager that others can reach does not start without a token.
        assert "rest.auth.token-file" in {key for key, _, _ in settings}
    else:
        assert (program, words) == ("python", ["-m", "penstock.demo"])
