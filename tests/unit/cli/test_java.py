from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common.exceptions import EnvironmentSetupError
from penstock.spark.java import find_java


def fake_java(folder: Path, says: str, code: int = 0) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_on_the_path_is_found_when_new_enough(no_java, tmp_path, version):
    java = fake_java(tmp_path / "jdk", f'openjdk version "{version}" 2025-04-15')
    no_java.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_java_home_goes_before_the_path(no_java, tmp_path):
    fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    home = fake_java(tmp_path / "home", 'openjdk version "21.0.1"')
    no_java.setenv("PATH", str(tmp_path / "path" / "bin"))
    no_java.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == home


def test_wrong_java_home_is_an_error_even_with_java_on_the_path(no_java, tmp_path):
    java = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    no_java.setenv("PATH", str(java.parent))
    no_java.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EnvironmentSetupError, match=r"JAVA_HOME is .*gone, but there is no program bin/java in it"):
        find_java()


def test_no_java_says_what_to_install(no_java):
    with pytest.raises(
        EnvironmentSetupError, match=r"no java found.*install Java 17 or newer.*openjdk-17-jre-headless"
    ):
        find_java()


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_too_old_java_is_named_with_its_version(no_java, tmp_path, version, major):
    java = fake_java(tmp_path / "old", f'openjdk version "{version}"')
    no_java.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(EnvironmentSetupError, match=rf"{java} is Java {major}, but Spark needs 17 or newer"):
        find_java()


def test_java_that_does_not_answer_with_a_version_is_quoted(no_java, tmp_path):
    fake_java(tmp_path / "broken", "libjvm.so is missing", code=3)
    no_java.setenv("JAVA_HOME", str(tmp_path / "broken"))
    with pytest.raises(EnvironmentSetupError, match=r"ended with code 3 and said 'libjvm.so is missing'"):
        find_java()


def test_the_version_is_read_from_the_installation_without_running_java(no_java, tmp_path):
    java = fake_java(tmp_path / "jdk", "is not to be asked", code=1)
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    no_java.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_an_old_installation_is_refused_by_its_file(no_java, tmp_path):
    java = fake_java(tmp_path / "jdk", "is not to be asked", code=1)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="1.8.0_402"\n')
    no_java.setenv("PATH", str(java.parent))
    with pytest.raises(EnvironmentSetupError, match="is Java 8, but Spark needs 17"):
        find_java()
