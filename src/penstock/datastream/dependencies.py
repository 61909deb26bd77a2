"""What a job brings along: Python files, archives, requirements, jars, cached files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, InvalidProgramError
from penstock.common.notices import notify


@dataclass(frozen=True)
class CachedFile:
    """A file that functions find by its name."""

    path: str
    """A local path, or an address that Spark can read."""
    is_executable: bool = False


@dataclass
class JobDependencies:
    """Paths on the machine where the program runs; the executor brings them to where the functions run."""

    python_files: list[str] = field(default_factory=list)
    archives: list[tuple[str, str]] = field(default_factory=list)
    """Archive and the name of the folder it becomes."""
    requirements: tuple[str, str | None] | None = None
    """A requirements file, and a folder with the packages for installing without a network."""
    jars: list[str] = field(default_factory=list)
    cached_files: dict[str, CachedFile] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """By Python file: the user's folder that its modules came from, if that was on another machine."""

    def __post_init__(self) -> None:
        for _, folder in self.archives:
            _check_target(folder, "add_python_archive")

    def add_python_file(self, path: str) -> None:
        self.python_files.append(_absolute(path))

    def add_python_archive(self, path: str, target_dir: str | None, asked_by: str = "add_python_archive") -> None:
        archive = _absolute(path)
        folder = target_dir or Path(archive).name
        _check_target(folder, asked_by)
        if folder in dict(self.archives).values():
            raise InvalidProgramError(f"{asked_by}: there is a folder '{folder}' already; choose another target_dir")
        self.archives.append((archive, folder))

    def set_python_requirements(self, path: str, cache_dir: str | None) -> None:
        self.requirements = (_absolute(path), None if cache_dir is None else _absolute(cache_dir))

    def add_jars(self, *paths: str) -> None:
        """Jars for Spark. One that is not there is left out: connectors and formats here need none."""
        for path in paths:
            jar = _absolute(path)
            if is_remote(jar) or Path(jar).exists():
                self.jars.append(jar)
            else:
                notify(f"there is no jar {path!r}; it is left out, since connectors here need no jars")

    def register_cached_file(
        self, path: str, name: str, executable: bool, asked_by: str = "register_cached_file"
    ) -> None:
        if name in self.cached_files:
            raise InvalidProgramError(f"{asked_by}: '{name}' is registered already; choose another name")
        self.cached_files[name] = CachedFile(_absolute(path), executable)

    def with_settings(self, config: Configuration) -> JobDependencies:
        """These dependencies and those that the configuration names (`python.files`, `pipeline.jars` and so on).

        Called before the job runs: all files must exist by then.
        """
        merged = JobDependencies(
            list(self.python_files),
            list(self.archives),
            self.requirements,
            list(self.jars),
            dict(self.cached_files),
            dict(self.origins),
        )
        for path in _split(config.get(keys.PYTHON_FILES)):
            merged.add_python_file(path)
        for item in _split(config.get(keys.PYTHON_ARCHIVES)):
            path, _, folder = item.partition("#")
            merged.add_python_archive(path, folder or None, keys.PYTHON_ARCHIVES.key)
        requirements = config.get(keys.PYTHON_REQUIREMENTS)
        if requirements and merged.requirements is None:
            path, _, cached = requirements.partition("#")
            merged.set_python_requirements(path, cached or None)
        for option in (keys.JARS, keys.CLASSPATHS):
            merged.add_jars(*(config.get(option) or ()))
        for item in config.get(keys.CACHED_FILES) or ():
            path, name, executable = _cached_file(item)
            merged.register_cached_file(path, name, executable, keys.CACHED_FILES.key)
        merged._check_files()
        return merged

    def origin_of(self, python_file: str) -> str:
        """The folder, or the archive, in which the user finds the modules of a Python file."""
        return self.origins.get(python_file, place_of_modules(python_file))

    def _check_files(self) -> None:
        requirements, packages = self.requirements or (None, None)
        named = [
            *((path, "Python file") for path in self.python_files),
            *((path, "Python archive") for path, _ in self.archives),
            (requirements, "requirements file"),
            (packages, "folder with the packages of the requirements"),
            *((file.path, "cached file") for file in self.cached_files.values() if not is_remote(file.path)),
        ]
        for path, what in named:
            if path is not None and not Path(path).exists():
                raise InvalidProgramError(f"the job's {what} {path!r} is not there; correct the path or leave it out")


def place_of_modules(python_file: str) -> str:
    """What is put on Python's path for it: a folder, or an archive."""
    return str(Path(python_file).parent) if python_file.endswith(".py") else python_file


def _check_target(folder: str, asked_by: str) -> None:
    if not folder or "\0" in folder or Path(folder).is_absolute() or ".." in Path(folder).parts:
        raise InvalidProgramError(
            f"{asked_by}: target_dir {folder!r} must lie in the folder of the job; use a relative path without .."
        )


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


def _absolute(path: str) -> str:
    """The path as seen from the current working folder; whether it exists is checked when the job runs."""
    path = _without_file_scheme(path)
    return path if is_remote(path) else str(Path(path).resolve())


def _without_file_scheme(path: str) -> str:
    """`file:///a/b` and `file:/a/b` are the path `/a/b`."""
    if not path.startswith("file:"):
        return path
    return "/" + path.removeprefix("file:").lstrip("/")
