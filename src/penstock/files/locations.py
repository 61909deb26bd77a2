"""Turns what a user has named, a path or a URI, into a store and the path within it."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from penstock.files.arrow_store import ArrowStore
from penstock.files.local_store import LocalStore
from penstock.files.store import FileStore

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")  # A drive's letter is no scheme.


def is_local(location: str) -> bool:
    """True if a path or URI leads to a file on this machine."""
    return not _SCHEME.match(location) or location.lower().startswith("file:")


def local_path(location: str) -> str:
    """The absolute path of a local location; `~` is the user's home.

    >>> local_path("file:///data/some%20file")
    '/data/some file'
    """
    path = unquote(urlsplit(location).path) if location.lower().startswith("file:") else location
    return os.path.abspath(os.path.expanduser(path))


def absolute_location(location: str) -> str:
    """The same place as seen from other working folders: tasks may run in another one than the program.

    >>> absolute_location("s3://bucket/folder/")
    's3://bucket/folder/'
    """
    return local_path(location) if is_local(location) else location


def store_at(location: str) -> tuple[FileStore, str]:
    """The store that a path or URI leads to, and the path within it.

    Local paths need nothing else. Other URIs are tried with Arrow, then with fsspec. ValueError if neither knows them.
    """
    if is_local(location):
        return LocalStore(), local_path(location)
    return ArrowStore.at(location)
