"""What a job brings along: Python files, archives, requirements, jars, cached files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.common.exceptions import InvalidProgramError


@dataclass
class JobDependencies:
    """Paths on the machine where the program runs; the executor takes them to where the functions run."""

    python_files: list[str] = field(default_factory=list)
    archives: list[tuple[str, str | None]] = field(default_factory=list)
    requirements: tuple[str, str | None] | None = None
    jars: list[str] = field(default_factory=list)
    cached_files: dict[str, str] = field(default_factory=dict)

    def add_python_file(self, path: str) -> None:
        self.python_files.append(_existing(path, "add_python_file"))

    def add_python_archive(self, path: str, target_dir: str | None) -> None:
        self.archives.append((_existing(path, "add_python_archive"), target_dir))

    def set_python_requirements(self, path: str, cache_dir: str | None) -> None:
        self.requirements = (_existing(path, "set_python_requirements"), cache_dir)

    def add_jars(self, *paths: str) -> None:
        self.jars.extend(paths)

    def register_cached_file(self, path: str, name: str, executable: bool) -> None:
        if name in self.cached_files:
            raise InvalidProgramError(f"register_cached_file: '{name}' is registered already; choose another name")
        self.cached_files[name] = _existing(path, "register_cached_file")


def _existing(path: str, method: str) -> str:
    local = Path(path.removeprefix("file://"))
    if not local.exists():
        raise InvalidProgramError(f"{method}: there is no file or folder {path!r}")
    return str(local.resolve())
