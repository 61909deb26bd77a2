"""Takes a job's dependencies to every executor, by Spark's own means.

Everything travels under a name made of its content: Spark keeps one flat folder of files for all jobs of a session and
never replaces a file, so that plain names of two jobs would get mixed up.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pickle
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext, SparkFiles

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, UnsupportedFeatureError
from penstock.common.local_folders import new_local_folder
from penstock.datastream.dependencies import CachedFile, JobDependencies, is_remote
from penstock.jobmaster.dependencies.archives import copy, files_below, pack, unpack
from penstock.jobmaster.dependencies.local_dependencies import add_to_path, make_executable, put_on_path
from penstock.jobmaster.dependencies.requirements import install_requirements
from penstock.runtime.protocol import JobDeployment
from penstock.runtime.shipped_files import remember_origin
from penstock.spark.context_settings import context_settings
from penstock.spark.master_names import is_local_master

# Pure Python, and what a worker needs to read its first task.
_PACKAGES_OF_WORKERS = ("penstock", "cloudpickle")


@dataclass(frozen=True)
class ShippedDependencies:
    """What was shipped, as a worker finds it. All values are names in Spark's folder of files."""

    python_paths: tuple[str, ...] = ()
    cached_files: tuple[tuple[str, str], ...] = ()
    executables: tuple[str, ...] = ()
    archives: tuple[tuple[str, str], ...] = ()
    """Folder and the name that the program gave it."""
    origins: tuple[tuple[str, str], ...] = ()
    """Python path, and where its modules were when the job was submitted."""

    def around(self, pickled_deployment: bytes) -> bytes:
        """A pickle that makes these usable in the process that loads it, then loads the deployment."""
        return pickle.dumps(_DeploymentBehind(self, pickled_deployment))

    def activate(self) -> dict[str, str]:
        """In a worker: make everything usable; returns the cached files' paths by name."""
        for name in self.python_paths:
            add_to_path(_path_of(name))
        for name, origin in self.origins:
            remember_origin(_path_of(name), origin)
        for name in self.executables:
            make_executable(_path_of(name))
        files = {name: _path_of(shipped) for name, shipped in self.cached_files}
        if self.archives:
            files.update(self._enter_archives())
        return files

    def _enter_archives(self) -> dict[str, str]:
        """As in Flink, functions find archives by relative paths: the worker's working folder is where they are.

        Executors of a cluster work in Spark's folder of files already. They must stay there: their path of Python is
        relative to it.
        """
        folder = Path(_path_of(""))
        if folder != Path.cwd():
            folder = folder / ("archives-" + "-".join(shipped[:8] for shipped, _ in self.archives))
            folder.mkdir(exist_ok=True)
            os.chdir(folder)
        for shipped, name in self.archives:
            _link(folder / name, _path_of(shipped))
        return {name: str(folder / name) for _, name in self.archives}


@dataclass(frozen=True)
class _DeploymentBehind:
    dependencies: ShippedDependencies
    pickled: bytes

    def __reduce__(self) -> Any:
        return load_deployment, (self.dependencies, self.pickled)


def load_deployment(dependencies: ShippedDependencies, pickled: bytes) -> JobDeployment:
    """The deployment in a worker; its functions may refer to modules that only the dependencies bring."""
    cached_files = dependencies.activate()
    return replace(pickle.loads(pickled), cached_files=cached_files)


def _link(link: Path, folder: str) -> None:
    with contextlib.suppress(FileExistsError):  # Another worker of this machine was here before.
        link.symlink_to(folder, target_is_directory=True)
    if os.readlink(link) != folder:
        raise ConfigurationError(
            f"add_python_archive: another job on this Spark session has another archive called '{link.name}'; give a "
            f"target_dir that only this job uses"
        )


_files_folder: str | None = None


def _path_of(name: str) -> str:
    global _files_folder
    if _files_folder is None:
        # On clusters this is relative to where the process started, which archives leave.
        _files_folder = os.path.realpath(SparkFiles.getRootDirectory())
    return os.path.join(_files_folder, name)


def ship(context: SparkContext, dependencies: JobDependencies, config: Configuration) -> ShippedDependencies:
    """Hand everything that the job needs to Spark."""
    check_python_executable(context, dependencies, config)
    check_jars(context, dependencies.jars)
    put_on_path(dependencies)
    with tempfile.TemporaryDirectory(prefix="penstock-unpacked-") as scratch:
        return _Shipment(context, Path(scratch)).ship(dependencies, config)


# Executors that start late fetch all files of a session from the driver: the copies stay until the program ends.
@functools.cache
def _staging_folder() -> Path:
    return new_local_folder(Path(tempfile.gettempdir()), "shipped")


class _Shipment:
    """The dependencies of one job on their way to Spark."""

    def __init__(self, context: SparkContext, scratch: Path) -> None:
        self._context = context
        self._scratch = scratch
        self._folder = _staging_folder()

    def ship(self, dependencies: JobDependencies, config: Configuration) -> ShippedDependencies:
        if not runs_on_this_machine(self._context):
            self._ship_packages()
        paths = [self._python_path(path) for path in dependencies.python_files]
        origins = tuple(zip(paths, map(dependencies.origin_of, dependencies.python_files), strict=True))
        if dependencies.requirements is not None:
            paths.append(self._unpacked(install_requirements(dependencies.requirements, config)))
        cached = {name: self._cached_file(file) for name, file in dependencies.cached_files.items()}
        return ShippedDependencies(
            tuple(paths),
            tuple(cached.items()),
            tuple(cached[name] for name, file in dependencies.cached_files.items() if file.is_executable),
            tuple(
                (self._unpacked(unpack(archive, self._scratch / f"archive-{folder}")), folder)
                for archive, folder in dependencies.archives
            ),
            origins,
        )

    def _ship_packages(self) -> None:
        """On a cluster the executors may not have this package, or another version of it."""
        content = []
        for name in _PACKAGES_OF_WORKERS:
            folder = Path(str(importlib.import_module(name).__file__)).parent
            content += [(file, f"{name}/{inside}") for file, inside in files_below(folder)]
        self._context.addPyFile(str(pack(content, self._folder)))

    def _python_path(self, path: str) -> str:
        """A name to put on the path of Python: unpacked, because a zip holds no compiled modules and no data."""
        source = Path(path)
        if source.is_dir():
            return self._unpacked(source)
        if source.suffix == ".py":
            return self._add_archive(pack([(source, source.name)], self._folder))
        return self._unpacked(unpack(path, self._scratch / f"unpacked-{source.name}"))

    def _unpacked(self, folder: Path) -> str:
        return self._add_archive(pack(files_below(folder), self._folder))

    def _add_archive(self, archive: Path) -> str:
        self._context.addArchive(f"{archive}#{archive.stem}")
        return archive.stem

    def _cached_file(self, file: CachedFile) -> str:
        if is_remote(file.path):
            self._context.addFile(file.path)
            return file.path.rpartition("/")[2]
        source = Path(file.path)
        if source.is_dir():
            return self._unpacked(source)
        packed = pack([(source, source.name)], self._folder)
        staged = self._folder / f"{packed.stem}-{source.name}"
        copy(source, staged)
        self._context.addFile(str(staged))
        return staged.name


def runs_on_this_machine(context: SparkContext) -> bool:
    """True if the workers are started by this process's own Spark and see the same folders and environment."""
    return is_local_master(str(context.master))


def check_python_executable(context: SparkContext, dependencies: JobDependencies, config: Configuration) -> None:
    """The Python of the workers is chosen when Spark starts: say so instead of running another one."""
    wanted = config.get_optional(keys.PYTHON_EXECUTABLE)
    if wanted is None or wanted == context.pythonExec:
        return
    if wanted.partition("/")[0] in dict(dependencies.archives).values():
        raise UnsupportedFeatureError(
            f"set_python_executable('{wanted}'): a Python from an archive of the job cannot run the workers; start "
            f"Spark with the archive instead (spark.archives) and set PYSPARK_PYTHON"
        )
    raise ConfigurationError(
        f"{keys.PYTHON_EXECUTABLE.key} is '{wanted}', but Spark has started with '{context.pythonExec}'; call "
        f"set_python_executable before the first job of the program, or stop the Spark session first"
    )


def check_jars(context: SparkContext, jars: list[str]) -> None:
    """Jars are loaded when Spark starts."""
    loaded = context_settings(context).get("spark.jars", "")
    missing = [jar for jar in jars if jar.rpartition("/")[2] not in loaded]
    if missing:
        raise ConfigurationError(
            f"add_jars: Spark has started without {', '.join(missing)}; call add_jars before the first job of the "
            f"program, or make the Spark session with spark.jars={','.join(missing)}"
        )
