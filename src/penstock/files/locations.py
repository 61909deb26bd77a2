"""Turns a path or URI into a store and the path within it."""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote, urlsplit

from penstock.files.arrow_store import ArrowStore
from penstock.files.local_store import LocalStore
from penstock.files.store import FileStore

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")  # A drive letter is not a scheme.

_OF_WINDOWS = re.compile(r"^[/\\]*[A-Za-z]:[/\\]")


def is_local(location: str) -> bool:
    """True if a path or URI leads to a file on this machine."""
    return not _SCHEME.match(location) or location.lower().startswith("file:")


def local_path(location: str) -> str:
    """The absolute path of a local location; `~` is the user's home.

    >>> local_path("file:///data/some%20file")
    '/data/some file'
    """
    path = unquote(urlsplit(location).path) if location.lower().startswith("file:") else location
    if os.name != "nt" and _OF_WINDOWS.match(path):
        raise ValueError(
            f"{location!r} is a path of Windows, but this machine would take it for a name in the working folder; use "
            f"a path of this machine, such as /tmp/checkpoints, or a URI"
        )
    return os.path.abspath(os.path.expanduser(path))


def absolute_location(location: str) -> str:
    """The location independent of the working folder: tasks may run in another one than the program.

    >>> absolute_location("s3://bucket/folder/")
    's3://bucket/folder/'
    """
    return local_path(location) if is_local(location) else location


def location_within(folder: str, name: str) -> str:
    """The location of something in a folder. The query of a URI says how to reach its store, and stays at the end.

    >>> location_within("s3://bucket/folder?region=x", "chk-1/_metadata")
    's3://bucket/folder/chk-1/_metadata?region=x'
    """
    path, query = _split(folder)
    return posixpath.join(path, name) + query


def location_above(location: str, name: str = "") -> str:
    """The folder that something is in. With `name`: the location itself, unless it ends in `name`.

    >>> location_above("s3://bucket/folder/chk-1?region=x")
    's3://bucket/folder?region=x'
    >>> location_above("/data/savepoint/", "_metadata")
    '/data/savepoint'
    """
    path, query = _split(location)
    path = path.rstrip("/") or path
    return (path if name and posixpath.basename(path) != name else posixpath.dirname(path)) + query


def _split(location: str) -> tuple[str, str]:
    path, mark, query = ("" if is_local(location) else location).partition("?")
    return path or location, mark + query


def store_at(location: str) -> tuple[FileStore, str]:
    """The store that a path or URI leads to, and the path within it.

    Local paths need nothing else. Other URIs are tried with Arrow, then with fsspec. ValueError if neither knows them.
    """
    if is_local(location):
        return LocalStore(), local_path(location)
    return ArrowStore.at(location)
