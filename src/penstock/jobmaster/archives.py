"""Packs folders and files into archives, and unpacks them, by content: the same content has the same name."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.common.exceptions import InvalidProgramError

_LEFT_OUT = {"__pycache__", ".git"}


def pack(content: Iterable[tuple[Path, str]], folder: Path) -> Path:
    """A zip file in `folder` with (file, name in the archive), called after its content."""
    entries = sorted(content, key=lambda entry: entry[1])
    digest = hashlib.sha256()
    for file, name in entries:
        digest.update(f"{name}\0{file.stat().st_mode}\0".encode())
        digest.update(file.read_bytes())
    archive = folder / f"{digest.hexdigest()[:16]}.zip"
    if not archive.exists():
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file, name in entries:
                packed.write(file, name)
    return archive


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a folder with its name relative to it."""
    for file in folder.rglob("*"):
        if file.is_file() and not _LEFT_OUT & set(file.relative_to(folder).parts):
            yield file, file.relative_to(folder).as_posix()


def unpack(archive: str, folder: Path) -> Path:
    """Unpack a zip, jar or tar file into `folder`; a folder instead of an archive is copied."""
    if Path(archive).is_dir():
        return Path(shutil.copytree(archive, folder))
    try:
        shutil.unpack_archive(archive, folder, "zip" if archive.endswith((".zip", ".jar", ".egg", ".whl")) else None)
    except (shutil.ReadError, zipfile.BadZipFile) as error:
        raise InvalidProgramError(
            f"add_python_archive: {archive} cannot be unpacked ({error}); use a .zip, .tar, .tar.gz or .tgz file"
        ) from error
    return folder
