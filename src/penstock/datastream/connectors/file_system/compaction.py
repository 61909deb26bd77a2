"""Merges small part files of a bucket before they are shown."""

from __future__ import annotations

import posixpath
import shutil
import uuid
from contextlib import suppress
from dataclasses import dataclass

from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.file_system.bucketing import FileCompactor, FileCompactStrategy
from penstock.datastream.connectors.file_system.part_files import (
    FileCommittable,
    InProgressFileToCleanup,
    PartFile,
)
from penstock.files.store import FileStore

_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Compaction:
    """When and how a sink merges files."""

    strategy: FileCompactStrategy
    compactor: FileCompactor


@dataclass(frozen=True)
class WaitingParts:
    """The files of a bucket that wait to be merged, as a checkpoint keeps them, and for how many checkpoints."""

    bucket_id: str
    parts: tuple[PartFile, ...]
    checkpoints: int


class PartsToCompact:
    """The finished files of one bucket of one subtask, until there are enough of them.

    They stay as they are, and hidden, until the checkpoint that knows the file they became part of is complete.
    """

    def __init__(self, compaction: Compaction, files: FileStore) -> None:
        self._strategy = compaction.strategy
        self._compactor = compaction.compactor
        self._delimiter = compaction.compactor.file_delimiter or b""
        self._files = files
        self.parts: list[PartFile] = []
        """The files that wait."""
        self._checkpoints = 0

    def __bool__(self) -> bool:
        return bool(self.parts)

    def restore(self, state: WaitingParts) -> None:
        self.parts.extend(state.parts)
        self._checkpoints = max(self._checkpoints, state.checkpoints)

    def snapshot(self, bucket_id: str) -> WaitingParts:
        return WaitingParts(bucket_id, tuple(self.parts), self._checkpoints)

    def prepare_commit(self, finished: list[PartFile], is_last: bool) -> list[FileCommittable]:
        """Take the files of a checkpoint; returns what to show and remove when it is complete."""
        self.parts.extend(finished)
        if not self.parts:
            return []
        self._checkpoints += 1
        if not (is_last or self._is_due()):
            return []
        parts, self.parts, self._checkpoints = self.parts, [], 0
        if self._compactor.kind == "identical" or len(parts) == 1:
            return list(parts)
        return [self._put_together(parts), *(InProgressFileToCleanup(part.hidden_path) for part in parts)]

    def _is_due(self) -> bool:
        size, checkpoints = self._strategy.size_threshold, self._strategy.num_checkpoints_before_compaction
        return 0 <= size <= sum(part.length for part in self.parts) or 0 < checkpoints <= self._checkpoints

    def _check(self, part: PartFile) -> None:
        size = self._files.size_of(part.hidden_path)
        if size != part.length:
            found = "it is gone" if size is None else f"it has {size}"
            raise JobExecutionError(
                f"FileSink: {part.hidden_path}, with {part.length} bytes, must be compacted with others, but "
                f"{found}; the job continued after this checkpoint, or the file was changed. Start from the latest "
                f"checkpoint"
            )

    def _put_together(self, parts: list[PartFile]) -> PartFile:
        """A new file, hidden, with the contents of all."""
        folder, name = posixpath.split(parts[0].path)
        path, hidden_path = f"{folder}/compacted-{name}", f"{folder}/.compacted-{name}.inprogress.{uuid.uuid4()}"
        for part in parts:
            self._check(part)
        try:
            self._write(hidden_path, parts)
        except BaseException:
            # On a full disk, for instance, each attempt would otherwise leave a file that nothing refers to.
            with suppress(OSError):
                self._files.delete(hidden_path)
            raise
        delimiters = len(self._delimiter) * (len(parts) - 1)
        return PartFile(path, hidden_path, sum(part.length for part in parts) + delimiters)

    def _write(self, hidden_path: str, parts: list[PartFile]) -> None:
        with self._files.create(hidden_path) as together:
            for number, part in enumerate(parts):
                if number > 0:
                    together.write(self._delimiter)
                with self._files.open(part.hidden_path) as small:
                    shutil.copyfileobj(small, together, _AT_ONCE)
            self._files.sync(together, hidden_path)
