"""Leases as files in a folder that all contenders reach."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict
from pathlib import Path

from penstock.checkpoint.folders import numbers_after
from penstock.cluster.high_availability.lease_policy import Lease
from penstock.common.private_folder import make_folders, open_new

_PREFIX = "lease-"
_KEPT = 2


class LeaseFiles:
    """A file for each token. The contender that creates the file has the token."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> Lease | None:
        """The lease with the largest token; None if there was never any."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return None
        tokens = numbers_after(_PREFIX, names)
        return self._read(max(tokens)) if tokens else None

    def _read(self, token: int) -> Lease:
        """Raises ValueError for what no contender wrote."""
        text = self._path(token).read_text()
        if not text:  # The process that made the file has not written its name yet.
            return Lease(token)
        try:
            return Lease(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"{self._path(token)} is no lease: {error}") from error

    def claim(self, token: int) -> bool:
        """True if the token is the caller's alone."""
        make_folders(self._folder)
        try:
            os.close(os.open(self._path(token), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def write(self, lease: Lease) -> None:
        partial = self._folder / f".{secrets.token_hex(8)}"
        try:
            with open_new(partial) as out:
                out.write(json.dumps(asdict(lease)).encode())
            os.replace(partial, self._path(lease.token))
        finally:
            partial.unlink(missing_ok=True)

    def forget_before(self, token: int) -> None:
        """Remove files of leaderships that are long over."""
        for old in numbers_after(_PREFIX, os.listdir(self._folder)):
            if old <= token - _KEPT:
                self._path(old).unlink(missing_ok=True)

    def _path(self, token: int) -> Path:
        return self._folder / f"{_PREFIX}{token:010d}"
