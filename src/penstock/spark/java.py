"""Find the Java that Spark will start, and say plainly when there is none it can use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError

MINIMUM_VERSION = 17

_INSTALL = (
    f"install Java {MINIMUM_VERSION} or newer (Debian: apt-get install openjdk-17-jre-headless) "
    "and put it on the PATH or set JAVA_HOME"
)
# 'version "17.0.15"' and 'version "21"', but 'version "1.8.0_402"' for Java 8.
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """The `java` Spark runs with: the one of JAVA_HOME when that is set, otherwise the first on the PATH.

    JAVA_HOME is final, as it is for Spark: a wrong one is an error even when the PATH has a good Java.
    Raises `EnvironmentSetupError` when there is none or it is older than Java 17.
    """
    java = _candidate()
    version = _major_version(java)
    if version < MINIMUM_VERSION:
        raise EnvironmentSetupError(f"{java} is Java {version}, but Spark needs {MINIMUM_VERSION} or newer; {_INSTALL}")
    return java


def _candidate() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise EnvironmentSetupError(
                f"JAVA_HOME is {home}, but there is no program bin/java in it; correct JAVA_HOME or {_INSTALL}"
            )
        return java
    found = shutil.which("java")
    if found is None:
        raise EnvironmentSetupError(f"no java found: JAVA_HOME is not set and none is on the PATH; {_INSTALL}")
    return Path(found)


def _major_version(java: Path) -> int:
    """From the file that comes with every Java installation; asking Java itself takes a tenth of a second."""
    released = _RELEASE.search(_release_file(java))
    return int(released.group(1)) if released is not None else _asked_version(java)


def _release_file(java: Path) -> str:
    try:
        return (java.resolve().parent.parent / "release").read_text()
    except (OSError, UnicodeDecodeError):  # A wrapper script, or no Java at all.
        return ""


def _asked_version(java: Path) -> int:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise EnvironmentSetupError(f"'{java} -version' does not run ({exc}); {_INSTALL}") from exc
    said = answer.stderr + answer.stdout
    version = _VERSION.search(said)
    if answer.returncode != 0 or version is None:
        first_line = said.strip().partition("\n")[0] or "nothing"
        raise EnvironmentSetupError(
            f"'{java} -version' ended with code {answer.returncode} and said {first_line!r}, not a version; {_INSTALL}"
        )
    return int(version.group(1))
