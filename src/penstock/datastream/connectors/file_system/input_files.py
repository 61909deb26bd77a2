"""Files to read, on this machine or in any store that a URI leads to."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import BinaryIO

from penstock.files.local_store import LocalStore
from penstock.files.locations import is_local, local_path, store_at

_HIDDEN = (".", "_")
"""Files whose names begin like this are still being written, or describe others, as in Flink."""


@dataclass(frozen=True)
class FoundFile:
    """A file: `root` leads to its file system, `path` to the file there."""

    root: str
    path: str
    size: int

    @property
    def uri(self) -> str:
        return uri_of(self.root, self.path)


def uri_of(root: str, path: str) -> str:
    """What distinguishes a file from all others, on any file system: its URI, or for local files its path.

    Passwords and options are left out, except for the address of the store.

    >>> uri_of("hdfs://nn1:8020/data", "/data/a.txt")
    'hdfs://nn1:8020/data/a.txt'
    >>> uri_of("s3://key:secret@bucket/logs?region=eu-west-1", "bucket/logs/a.txt")
    's3://bucket/logs/a.txt'
    """
    if not root:
        return path
    parts = urllib.parse.urlsplit(root)
    user, _, host = parts.netloc.rpartition("@")
    # In `container@account` of Azure's stores the first part is not a secret, and distinguishes stores.
    authority = f"{user}@{host}" if user and parts.scheme.startswith(("abfs", "wasb")) else host
    bucket = next((each for each in (host, user) if each and path.startswith(f"{each}/")), "")
    endpoint = urllib.parse.parse_qs(parts.query).get("endpoint_override")
    store = f"?endpoint_override={endpoint[0]}" if endpoint else ""
    return f"{parts.scheme}://{authority}/{path[len(bucket) :].lstrip('/')}{store}"


def is_below(root: str, path: str) -> bool:
    """True if a path within a file system may have been found by looking at `root`, itself a path or URI."""
    if is_local(root):
        tops = [local_path(root)]
    else:
        parts = urllib.parse.urlsplit(root)
        user, _, host = parts.netloc.rpartition("@")
        # In some stores a path begins with the host or bucket, with a slash before it or not.
        tops = [f"{each}{parts.path}" for each in (host, user) if each]
        if path.startswith("/"):
            tops = [parts.path, f"/{host}{parts.path}"]
    return any(path == top or path.startswith(f"{top.rstrip('/')}/") for top in tops)


def find_files(paths: tuple[str, ...]) -> list[FoundFile]:
    """All files that the paths lead to, each once, by name."""
    found: dict[str, FoundFile] = {}
    for path in paths:
        store, within = store_at(path)
        root = "" if is_local(path) else path
        for each, size in store.find(within, _HIDDEN):
            file = FoundFile(root, each, size)
            found[file.uri] = file
    return sorted(found.values(), key=lambda file: (file.path, file.uri))


def open_file(root: str, path: str) -> BinaryIO:
    store = store_at(root)[0] if root else LocalStore()
    try:
        return store.open(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"file {path} was there when the source looked for files, or when a checkpoint was taken, and is gone; put "
            f"it back, or start the job without state"
        ) from None
