"""What a client uploads with a job: the pickled graph, the files it depends on, and the modules of the program."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import cloudpickle  # type: ignore[import-untyped]

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.job_id import JobID
from penstock.datastream.dependencies import CachedFile, JobDependencies, is_remote
from penstock.files.locations import is_local, local_path
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.dependencies.archives import files_below, pack
from penstock.jobmaster.dependencies.blob_store import ShippedFile
from penstock.jobmaster.job_submission import JobSubmission, ShippedCachedFile, ShippedDependencies

# Settings that name files of the client, which are shipped instead.
_SHIPPED = (
    keys.PYTHON_FILES, keys.PYTHON_ARCHIVES, keys.PYTHON_REQUIREMENTS, keys.JARS, keys.CLASSPATHS, keys.CACHED_FILES,
)  # fmt: skip
# Settings about where the job goes, which mean nothing once it is there.
_OF_THE_CLIENT = (
    keys.TARGET, keys.ATTACHED, keys.REST_ADDRESS, keys.REST_PORT, keys.REST_BIND_PORT, keys.HIGH_AVAILABILITY,
)  # fmt: skip
# How the client reaches the job manager, with secrets: none of the job's business.
_OF_THE_CONNECTION = ("rest.auth.", "security.ssl.")
# Folders of the job, which may be written relative to where the client was started.
_FOLDERS = (keys.SAVEPOINT_PATH, keys.CHECKPOINT_DIR, keys.SAVEPOINT_DIR, keys.WORKING_DIR)


@dataclass
class JobBundle:
    """A submission and the contents of its blobs: bytes, or files of this machine."""

    submission: JobSubmission
    blobs: dict[str, bytes | Path] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """What each blob is, for messages."""


@contextmanager
def bundled(graph: JobGraph, config: Configuration, dependencies: JobDependencies) -> Iterator[JobBundle]:
    """The job as it goes to a job manager; packed files live as long as the context."""
    with tempfile.TemporaryDirectory(prefix="penstock-bundle-") as folder:
        yield _Bundler(Path(folder)).bundle(graph, config, dependencies.with_settings(config))


class _Bundler:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blobs: dict[str, bytes | Path] = {}
        self._names: dict[str, str] = {}

    def bundle(self, graph: JobGraph, config: Configuration, dependencies: JobDependencies) -> JobBundle:
        pickled = cloudpickle.dumps(graph)
        submission = JobSubmission(
            self._add(hashlib.sha256(pickled).hexdigest(), pickled, "the job with its functions and collections"),
            settings_of_job(config),
            self._dependencies(dependencies),
            config.get_optional(keys.ATTACHED) is not False,
            config.get(keys.SHUTDOWN_ON_EXIT),
            job_id=str(JobID.generate()),
            submitter=secrets.token_hex(16),
        )
        return JobBundle(submission, self._blobs, self._names)

    def _dependencies(self, dependencies: JobDependencies) -> ShippedDependencies:
        python_files = [
            replace(self._file(path), origin=dependencies.origin_of(path)) for path in dependencies.python_files
        ]
        if modules := modules_of_program():
            python_files.append(replace(self._packed("modules", modules), origin=str(_folder_of_program())))
        requirements = None
        if dependencies.requirements is not None:
            file, packages = dependencies.requirements
            requirements = (self._file(file), None if packages is None else self._file(packages))
        return ShippedDependencies(
            tuple(python_files),
            tuple((self._file(archive), folder) for archive, folder in dependencies.archives),
            requirements,
            tuple(dependencies.jars),
            {name: self._cached_file(file) for name, file in dependencies.cached_files.items()},
        )

    def _cached_file(self, file: CachedFile) -> ShippedCachedFile:
        if is_remote(file.path):
            return ShippedCachedFile(None, file.path, file.is_executable)
        return ShippedCachedFile(self._file(file.path), None, file.is_executable)

    def _file(self, path: str) -> ShippedFile:
        source = Path(path)
        if source.is_dir():
            return self._packed(source.name, list(files_below(source)))
        return ShippedFile(source.name, self._add(_hash_of(source), source, path))

    def _packed(self, name: str, files: list[tuple[Path, str]]) -> ShippedFile:
        packed = pack(files, self._folder)
        return ShippedFile(name, self._add(_hash_of(packed), packed, name), is_folder=True)

    def _add(self, blob: str, content: bytes | Path, name: str) -> str:
        self._blobs[blob], self._names[blob] = content, name
        return blob


def _hash_of(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def settings_of_job(config: Configuration) -> dict[str, str]:
    """The settings that go with the job, with folders as they are called from anywhere on this machine."""
    job = Configuration(config)
    for option in (*_SHIPPED, *_OF_THE_CLIENT):
        job.remove_config(option.key)
    for key in [each for each in job.key_set() if each.startswith(_OF_THE_CONNECTION)]:
        job.remove_config(key)
    for option in _FOLDERS:
        given = job.get_optional(option)
        if given is not None and is_local(given):
            job.set_string(option.key, local_path(given))
    return job.to_dict()


def modules_of_program() -> list[tuple[Path, str]]:
    """Files of imported modules that were found in the folder of the program, with their places in it."""
    folder = _folder_of_program()
    return sorted(
        (file, place)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] != "penstock"  # It may lie beside the program, as in a checkout
        for place in _places(name)
        if (file := folder / place).is_file() and file == _source_of(module)
    )


def _folder_of_program() -> Path:
    return Path(sys.path[0] or os.getcwd()).resolve()


def _places(module: str) -> tuple[str, str]:
    """Where a module is found below a folder of Python's path."""
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


def _source_of(module: object) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None
