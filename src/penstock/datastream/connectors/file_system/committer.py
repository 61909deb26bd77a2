"""The file sink in the driver: shows part files when their checkpoint is complete."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from penstock.common.daemon_pool import DaemonPool
from penstock.datastream.connectors.file_system.part_files import (
    FileCommittable,
    InProgressFileToCleanup,
    PartFile,
)
from penstock.datastream.connectors.sink_v2 import CommitRequest, Committer
from penstock.files.local_store import LocalStore
from penstock.files.locations import store_at

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8


class FileCommitter(Committer[FileCommittable]):
    """Gives part files their final names and removes what is not needed. Files that were done before are left alone."""

    def __init__(self, base_path: str) -> None:
        self._files, _ = store_at(base_path)
        self._shown: set[str] = set()
        """What calls have shown since the last one without failure: after a restart it comes again, and a reader may
        have moved it by then. A file that was never there is none of it, however often it comes."""
        self._pool: DaemonPool | None = None

    def commit(self, requests: list[CommitRequest[FileCommittable]]) -> None:
        found = [(request, request.get_committable()) for request in requests]
        parts = [(part, request) for request, part in found if isinstance(part, PartFile)]
        renamed = self._each(lambda each: self._show(*each), parts)
        # Only now: files that were merged are removed when the merged file can be seen.
        self._each(self._remove, [file for _, file in found if isinstance(file, InProgressFileToCleanup)])
        folders = {
            posixpath.dirname(part.path) for (part, _), is_renamed in zip(parts, renamed, strict=True) if is_renamed
        }
        self._each(self._files.sync_folder, sorted(folders))
        self._shown &= {part.path for part, _ in parts}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _each(self, act: Callable[[T], R], on: list[T]) -> list[R]:
        """Call `act` with each, in parallel where that is mostly waiting. The first failure is raised at the end."""
        if isinstance(self._files, LocalStore) or len(on) < 2:
            return [act(each) for each in on]
        if self._pool is None:
            self._pool = DaemonPool(_AT_ONCE, "commit")
        done = [self._pool.submit(act, each) for each in on]
        wait(done)
        return [each.result() for each in done]

    def _remove(self, file: InProgressFileToCleanup) -> None:
        if self._files.size_of(file.hidden_path) is not None:
            self._files.delete(file.hidden_path)

    def _show(self, part: PartFile, request: CommitRequest[FileCommittable]) -> bool:
        """True if the file was renamed."""
        size = self._files.size_of(part.hidden_path)
        if size is None:
            if self._files.size_of(part.path) is None and part.path not in self._shown:
                request.signal_failed_with_unknown_reason(_lost(part))
            else:
                self._shown.add(part.path)
                request.signal_already_committed()
            return False
        if size != part.length:
            request.signal_failed_with_unknown_reason(_changed(part, size))
            return False
        self._files.rename(part.hidden_path, part.path)
        self._shown.add(part.path)
        return True


def _lost(part: PartFile) -> FileNotFoundError:
    return FileNotFoundError(
        f"FileSink: the checkpoint holds {part.path}, but neither this file nor {part.hidden_path}, from which it is "
        f"made, is there; it was removed, or is on another machine. The driver and all executors must reach a sink's "
        f"folder, and finished files must stay until the next checkpoint is complete"
    )


def _changed(part: PartFile, size: int) -> OSError:
    return OSError(
        f"FileSink: {part.hidden_path} has {size} bytes, but the checkpoint says {part.length}; something else writes "
        f"to the sink's folder"
    )
