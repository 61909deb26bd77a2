"""Installs a job's requirements into a folder of their own, once for each content."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.private_folder import make_private

_log = logging.getLogger(__name__)

_PACKAGES = "packages"
_CONTENT = "content.sha256"


def install_requirements(requirements: tuple[str, str | None], config: Configuration) -> Path:
    """A folder with the packages that `requirements` names; made by pip unless an earlier run has left it.

    With a folder of packages nothing is fetched from a network.
    """
    file, packages = Path(requirements[0]), requirements[1]
    python = config.get_optional(keys.PYTHON_EXECUTABLE) or sys.executable
    place = _folder_of_user(config) / _digest(file, packages, python)
    if place.is_dir() and not _is_whole(place):
        _log.warning("%s is not what was installed there; it is installed again", place)
        shutil.rmtree(place)
    if not place.is_dir():
        # Installed aside and moved at the end: a folder of that name is always complete.
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="installing-") as aside:
            installed = Path(aside) / "installed"
            installed.mkdir()
            _pip_install(python, file, packages, installed / _PACKAGES)
            (installed / _CONTENT).write_text(_hash_of(installed / _PACKAGES))
            try:
                os.replace(installed, place)
            except OSError:
                if not place.is_dir():  # Otherwise another program was quicker.
                    raise
    return place / _PACKAGES


def _folder_of_user(config: Configuration) -> Path:
    """What is in it is imported: nobody else may put anything there, even where the folder above is shared."""
    folder = cache_folder(config) / f"requirements-{os.getuid()}"
    make_private(folder, "what is in it is imported", f"set {keys.WORKING_DIR.key} to another folder")
    return folder


def _is_whole(place: Path) -> bool:
    """True if the packages are those that were installed: files of a cache may be removed one by one, or changed."""
    try:
        return (place / _CONTENT).read_text() == _hash_of(place / _PACKAGES)
    except OSError:
        return False


def _hash_of(folder: Path) -> str:
    """Over names and contents of all files but those that Python adds when it imports."""
    digest = hashlib.sha256()
    for file in sorted(each for each in folder.rglob("*") if "__pycache__" not in each.parts and not each.is_dir()):
        name = os.fsencode(file.relative_to(folder))
        content = os.fsencode(os.readlink(file)) if file.is_symlink() else hashlib.sha256(file.read_bytes()).digest()
        digest.update(len(name).to_bytes(8, "big") + name + content)
    return digest.hexdigest()


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
        digest.update(_hash_of(Path(packages)).encode())
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
