"""Files that clients have uploaded to a job manager, by the hash of their content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from penstock.common import config_keys as keys
from penstock.common.exceptions import PenstockError
from penstock.jobmaster.dependencies.archives import unpack

_HASH = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 255


class BlobError(PenstockError):
    """An uploaded file is too large, damaged, or not there. `status` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ShippedFile:
    """A file of the client's, or a folder packed into a zip file."""

    name: str
    blob: str
    """SHA-256 of the content."""
    is_folder: bool = False
    origin: str | None = None
    """For Python files: the client's folder that is put on the path of Python."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "blob": self.blob, "is-folder": self.is_folder, "origin": self.origin}

    @staticmethod
    def of_json(document: Any) -> ShippedFile:
        origin = document.get("origin")
        return ShippedFile(
            _checked_name(document["name"]),
            str(document["blob"]),
            bool(document["is-folder"]),
            None if origin is None else str(origin),
        )


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or Path(name).name in ("", "..") or "\0" in name or not _can_be_written(name):
        raise BlobError(f"{name!r} is not the name of a file")
    return name


def _can_be_written(name: str) -> bool:
    """True if file systems take the name: it has a length and characters that they have room and bytes for."""
    try:
        return len(os.fsencode(Path(name).name)) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


class BlobStore:
    """Keeps each content once. What no job uses goes after `keep_s` seconds; `max_total` bytes is the most of all."""

    def __init__(self, folder: Path, max_bytes: int, keep_s: int, max_total: int) -> None:
        self.max_bytes = max_bytes
        self._max_total = max_total
        self._total = 0
        self._keep_s = keep_s
        self._blobs = folder / "blobs"
        self._files = folder / "files"
        self._lock = threading.Lock()
        self._room = threading.Lock()
        for each in (self._blobs, self._files):
            each.mkdir(parents=True)

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Those that must be uploaded; the others stay for the time that it takes to use them."""
        return [each for each in hashes if not self._touch(each)]

    def _touch(self, blob: str) -> bool:
        try:
            os.utime(self._path(blob))
        except FileNotFoundError:
            return False
        return True

    def _path(self, blob: str) -> Path:
        if not _HASH.fullmatch(blob):
            raise BlobError(f"{blob!r} is not the SHA-256 of a file in hexadecimal digits")
        return self._blobs / blob

    def upload(self, blob: str) -> Upload:
        return Upload(self._path(blob), self.max_bytes, self._take)

    def _take(self, size: int) -> None:
        """Count bytes that were added, or with a negative size removed; refused if there is no room for them."""
        with self._room:
            if size > 0 and self._total + size > self._max_total:
                raise BlobError(
                    f"uploaded files have {self._total} bytes together, and this job manager keeps at most "
                    f"{self._max_total}; wait until jobs have ended and their files have expired, or start it with a "
                    f"larger {keys.BLOB_MAX_TOTAL.key}",
                    507,
                )
            self._total += size

    def read(self, blob: str) -> bytes:
        if not self._touch(blob):
            raise BlobError(f"file {blob} was not uploaded, or not lately; submit the job again")
        return self._path(blob).read_bytes()

    def materialize(self, file: ShippedFile) -> str:
        """The path of a shipped file under its own name; of a folder, unpacked. The same content has the same path."""
        name = Path(file.name).name
        place = self._files / f"{file.blob}-{'folder' if file.is_folder else 'file'}"
        with self._lock:
            if not self._touch(file.blob):
                raise BlobError(f"{name} was not uploaded, or not lately; submit the job again")
            if not (place / name).exists():
                self._put(file, place / name)
        return str(place / name)

    def _put(self, file: ShippedFile, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        partial = target.with_name(f".{secrets.token_hex(8)}")
        if file.is_folder:
            packed = partial.with_suffix(".zip")
            os.link(self._path(file.blob), packed)
            partial.mkdir()
            unpack(str(packed), partial)
            packed.unlink()
        else:
            shutil.copyfile(self._path(file.blob), partial)
        partial.rename(target)

    def clean(self, in_use: Collection[str]) -> None:
        """Remove what no job uses and nobody has asked for lately."""
        oldest = time.time() - self._keep_s
        with self._lock:
            for path in self._blobs.iterdir():
                with contextlib.suppress(FileNotFoundError):  # An upload that ends at this moment
                    status = path.stat()
                    if path.name not in in_use and not path.name.startswith(".") and status.st_mtime < oldest:
                        path.unlink()
                        self._take(-status.st_size)
                        for place in self._files.glob(f"{path.name}-*"):
                            shutil.rmtree(place)


class Upload:
    """Takes in a file piece by piece; it counts only if its hash is right. Use it as a context."""

    def __init__(self, path: Path, max_bytes: int, take: Callable[[int], None]) -> None:
        self._path = path
        self._take = take
        self._partial = path.with_name(f".{secrets.token_hex(8)}")
        self._max_bytes = max_bytes
        self._size = 0
        self._counted = 0
        """What counts against the room of the store until the file is there, or given up."""
        self._digest = hashlib.sha256()
        self._out: BinaryIO = self._partial.open("wb")

    def write(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            raise BlobError(
                f"the file is larger than the {self._max_bytes} bytes that this job manager takes; start it with a "
                f"larger rest.server.max-content-length, or let the job read the file from where both reach it",
                413,
            )
        self._take(len(piece))
        self._counted += len(piece)
        self._digest.update(piece)
        self._out.write(piece)

    def finish(self) -> None:
        self._out.close()
        if self._digest.hexdigest() != self._path.name:
            raise BlobError(f"{self._path.name} arrived with the hash {self._digest.hexdigest()}; upload it again")
        while not self._is_first():  # Another client was quicker.
            with contextlib.suppress(FileNotFoundError):  # What it had uploaded has expired at this moment.
                os.utime(self._path)
                return
        self._counted = 0  # From now on it counts until it expires.

    def _is_first(self) -> bool:
        """Give the file its name; False if there is one of that name."""
        try:
            os.link(self._partial, self._path)
        except FileExistsError:
            return False
        return True

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._partial.unlink(missing_ok=True)
        self._take(-self._counted)
        self._counted = 0
