"""Packs folders and files into archives, and unpacks them, by content: the same content has the same name."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError, InvalidProgramError

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
        with (
            _complete_at(archive) as partial,
            # Files from before 1980, which zip files cannot say, are packed as from 1980.
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as packed,
        ):
            for file, name in entries:
                packed.write(file, name)
    return archive


def copy(file: Path, target: Path) -> None:
    """Copy a file to a name that says what its content is, unless it is there."""
    if not target.exists():
        with _complete_at(target) as partial:
            shutil.copyfile(file, partial)


@contextmanager
def _complete_at(target: Path) -> Iterator[Path]:
    """A file to write, which gets its name when it is complete.

    Jobs that start at the same time may bring the same content, and the disk may be full halfway.
    """
    partial = target.with_name(f".{secrets.token_hex(8)}")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a folder with its name relative to it."""
    for file in folder.rglob("*"):
        if file.is_file() and not _LEFT_OUT & set(file.relative_to(folder).parts):
            yield file, file.relative_to(folder).as_posix()


def unpack(archive: str, folder: Path) -> Path:
    """Unpack a zip, jar or tar file into `folder`; a folder instead of an archive is copied.

    An archive with files that would lie elsewhere is refused.
    """
    if Path(archive).is_dir():
        return Path(shutil.copytree(archive, folder))
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder)
        else:
            _unpack_tar(archive, folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise InvalidProgramError(
            f"add_python_archive: {archive} cannot be unpacked ({reason}); use a .zip, .tar, .tar.gz or .tgz file "
            f"whose files all lie within it"
        ) from error
    return folder


def _unpack_zip(archive: str, folder: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        entries = packed.infolist()
    for name in (entry.filename for entry in entries):
        if name.startswith("/") or ".." in name.split("/"):
            raise zipfile.BadZipFile(f"it holds {name!r}, which would lie outside of its folder")
    shutil.unpack_archive(archive, folder, "zip")
    for entry in entries:  # As Flink does, and unlike Python itself: programs stay programs.
        may_run = entry.external_attr >> 16 & 0o111
        if may_run and not entry.is_dir():
            file = folder / entry.filename
            file.chmod(file.stat().st_mode | may_run)


def _unpack_tar(archive: str, folder: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise EnvironmentSetupError(
            f"add_python_archive: this Python cannot unpack {archive} safely; use a newer one (3.10.12, 3.11.4 or "
            f"later), or a .zip file"
        )
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
