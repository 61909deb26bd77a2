"""What a job brings along: Python files, archives, requirements, jars, cached files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, InvalidProgramError


@dataclass(frozen=True)
class CachedFile:
    path: str
    """A local path, or an address that Spark can read."""
    is_executable: bool = False


@dataclass
class JobDependencies:
    """Paths on the machine where the program runs; the executor takes them to where the functions run."""

    python_files: list[str] = field(default_factory=list)
    archives: list[tuple[str, str]] = field(default_factory=list)
    """Archive and the name of the folder it becomes."""
    requirements: tuple[str, str | None] | None = None
    """A requirements file, and a folder with the packages for installing without a network."""
    jars: list[str] = field(default_factory=list)
    cached_files: dict[str, CachedFile] = field(default_factory=dict)

    def add_python_file(self, path: str, asked_by: str = "add_python_file") -> None:
        self.python_files.append(_existing(path, asked_by))

    def add_python_archive(self, path: str, target_dir: str | None, asked_by: str = "add_python_archive") -> None:
        archive = _existing(path, asked_by)
        folder = target_dir or Path(archive).name
        if folder in dict(self.archives).values():
            raise InvalidProgramError(f"{asked_by}: there is a folder '{folder}' already; choose another target_dir")
        self.archives.append((archive, folder))

    def set_python_requirements(
        self, path: str, cache_dir: str | None, asked_by: str = "set_python_requirements"
    ) -> None:
        cached = None if cache_dir is None else _existing(cache_dir, asked_by)
        self.requirements = (_existing(path, asked_by), cached)

    def add_jars(self, *paths: str, asked_by: str = "add_jars") -> None:
        self.jars.extend(_existing_or_remote(path, asked_by) for path in paths)

    def register_cached_file(
        self, path: str, name: str, executable: bool, asked_by: str = "register_cached_file"
    ) -> None:
        if name in self.cached_files:
            raise InvalidProgramError(f"{asked_by}: '{name}' is registered already; choose another name")
        self.cached_files[name] = CachedFile(_existing_or_remote(path, asked_by), executable)

    def with_settings(self, config: Configuration) -> JobDependencies:
        """These, and those that the configuration names (`python.files`, `pipeline.jars` and so on)."""
        merged = JobDependencies(
            list(self.python_files), list(self.archives), self.requirements, list(self.jars), dict(self.cached_files)
        )
        for path in _split(config.get(keys.PYTHON_FILES)):
            merged.add_python_file(path, keys.PYTHON_FILES.key)
        for item in _split(config.get(keys.PYTHON_ARCHIVES)):
            path, _, folder = item.partition("#")
            merged.add_python_archive(path, folder or None, keys.PYTHON_ARCHIVES.key)
        requirements = config.get(keys.PYTHON_REQUIREMENTS)
        if requirements and merged.requirements is None:
            path, _, cached = requirements.partition("#")
            merged.set_python_requirements(path, cached or None, keys.PYTHON_REQUIREMENTS.key)
        for option in (keys.JARS, keys.CLASSPATHS):
            merged.add_jars(*(config.get(option) or ()), asked_by=option.key)
        for item in config.get(keys.CACHED_FILES) or ():
            path, name, executable = _cached_file(item)
            merged.register_cached_file(path, name, executable, keys.CACHED_FILES.key)
        return merged


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _cached_file(item: str) -> tuple[str, str, bool]:
    """Flink's form: `name:dictionary,path:/data/words.txt,executable:false`."""
    given = dict(part.strip().partition(":")[::2] for part in item.split(","))
    if not {"name", "path"} <= given.keys():
        raise ConfigurationError(
            f"{keys.CACHED_FILES.key}: {item!r} must have a name and a path, such as 'name:words,path:/data/words.txt'"
        )
    return given["path"].strip("'"), given["name"].strip("'"), given.get("executable", "").lower() == "true"


def is_remote(path: str) -> bool:
    return "://" in path


def _existing_or_remote(path: str, asked_by: str) -> str:
    path = _without_file_scheme(path)
    return path if is_remote(path) else _existing(path, asked_by)


def _existing(path: str, asked_by: str) -> str:
    local = Path(_without_file_scheme(path))
    if not local.exists():
        raise InvalidProgramError(f"{asked_by}: there is no file or folder {path!r}")
    return str(local.resolve())


def _without_file_scheme(path: str) -> str:
    """`file:///a/b` and `file:/a/b` are the path `/a/b`."""
    if not path.startswith("file:"):
        return path
    return "/" + path.removeprefix("file:").lstrip("/")
