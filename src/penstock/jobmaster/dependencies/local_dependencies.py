"""A job's dependencies in the driver's own process."""

from __future__ import annotations

import importlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from penstock.common.configuration import Configuration
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.local_folders import new_local_folder
from penstock.datastream.dependencies import JobDependencies, is_remote, place_of_modules
from penstock.jobmaster.dependencies.archives import unpack
from penstock.jobmaster.dependencies.requirements import install_requirements
from penstock.runtime.shipped_files import remember_origin


def put_on_path(dependencies: JobDependencies) -> None:
    """Let this process import what the job's functions import: their results come back here."""
    for path in dependencies.python_files:
        add_to_path(place_of_modules(path))
        remember_origin(place_of_modules(path), dependencies.origin_of(path))


def add_to_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(1, folder)
        importlib.invalidate_caches()


class LocalDependencies:
    """Everything a job needs when it runs in this process. Archives are unpacked into a folder that goes at the end."""

    def __init__(self, dependencies: JobDependencies, config: Configuration) -> None:
        self._unpacked: Path | None = None
        put_on_path(dependencies)
        if dependencies.requirements is not None:
            add_to_path(str(install_requirements(dependencies.requirements, config)))
        self.files = {name: _local_file(name, file.path) for name, file in dependencies.cached_files.items()}
        for name, file in dependencies.cached_files.items():
            if file.is_executable:
                make_executable(self.files[name])
        if dependencies.archives:
            self._unpacked = new_local_folder(Path(tempfile.gettempdir()), "archives")
            for archive, folder in dependencies.archives:
                self.files.setdefault(folder, str(unpack(archive, self._unpacked / folder)))

    def close(self) -> None:
        if self._unpacked is not None:
            shutil.rmtree(self._unpacked, ignore_errors=True)


def make_executable(path: str) -> None:
    mode = os.stat(path).st_mode
    if not mode & stat.S_IXUSR:
        os.chmod(path, mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _local_file(name: str, path: str) -> str:
    if is_remote(path):
        raise UnsupportedFeatureError(
            f"register_cached_file('{path}', '{name}'): with execution.target=inline only local files can be read; "
            f"copy the file here, or run on Spark"
        )
    return path
