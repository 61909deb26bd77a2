"""Installs a job's requirements into a folder of their own, once for each content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError


def install_requirements(requirements: tuple[str, str | None], config: Configuration) -> Path:
    """A folder with the packages that `requirements` names; made by pip unless it is there from an earlier run.

    With a folder of packages nothing is fetched from a network.
    """
    file, packages = Path(requirements[0]), requirements[1]
    python = config.get_optional(keys.PYTHON_EXECUTABLE) or sys.executable
    folder = cache_folder(config) / f"requirements-{_digest(file, packages, python)}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Installed aside and moved at the end: a folder of that name is always complete.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="installing-") as aside:
            _pip_install(python, file, packages, Path(aside) / "packages")
            try:
                os.replace(Path(aside) / "packages", folder)
            except OSError:
                if not folder.is_dir():  # Otherwise another program was quicker.
                    raise
    return folder


def cache_folder(config: Configuration) -> Path:
    """Where what was made for one job is kept for the next one."""
    working_dir = config.get_optional(keys.WORKING_DIR)
    if working_dir is not None:
        return Path(working_dir) / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _digest(file: Path, packages: str | None, python: str) -> str:
    digest = hashlib.sha256(file.read_bytes())
    digest.update(f"{python} {sys.version_info[:2]}".encode())
    if packages is not None:
        digest.update(repr(sorted((each.name, each.stat().st_size) for each in Path(packages).iterdir())).encode())
    return digest.hexdigest()[:16]


def _pip_install(python: str, file: Path, packages: str | None, target: Path) -> None:
    target.mkdir()
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(target)]
    if packages is not None:
        command += ["--no-index", "--find-links", packages]
    try:
        answer = subprocess.run([*command, "-r", str(file)], capture_output=True, text=True)
    except OSError as error:
        raise EnvironmentSetupError(f"set_python_requirements: cannot run {python}: {error.strerror}") from error
    if answer.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        said = [line for line in (answer.stderr + answer.stdout).splitlines() if line.strip()]
        raise EnvironmentSetupError(
            f"set_python_requirements: pip cannot install {file}: {said[-1].strip() if said else 'it gave no reason'}; "
            f"correct the file, or give a folder that holds the packages as requirements_cache_dir"
        )
