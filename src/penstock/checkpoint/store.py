"""The complete checkpoints of a job, on disk: written whole, kept as long as they are wanted, and then removed.

Files are removed in the background. Which of them go is decided then, by what checkpoints and subtasks still need.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath

from penstock.checkpoint.finding import CHECKPOINT_PREFIX, checkpoint_numbers
from penstock.checkpoint.folders import Folder
from penstock.checkpoint.leadership import JobLeadership
from penstock.checkpoint.metadata import METADATA, CheckpointMetadata, decode_metadata
from penstock.checkpoint.removals import Removals
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.abandoned_calls import check_wanted
from penstock.common.exceptions import AbandonedError, CheckpointError, CorruptStateError, LeadershipLostError
from penstock.graph.regions import Region
from penstock.runtime.saved_state import SHARED

_log = logging.getLogger(__name__)

TASK_OWNED = "taskowned"
"""The part of a job's folder for files that checkpoints refer to without writing them again, as in Flink."""


class CompletedCheckpointStore:
    """Flink's layout: `chk-<n>/_metadata`, with the state files in `shared`."""

    def __init__(self, folder: Folder, retained: int, leadership: JobLeadership | None = None) -> None:
        self.folder = folder
        self.leadership = leadership or JobLeadership()
        self._retained = retained
        self._checkpoints: list[CheckpointMetadata] = []
        self._held: list[CheckpointMetadata] = []
        self._doubtful: set[int] = set()
        """Checkpoints that failed when they were written, but may exist all the same."""
        self._lock = threading.Lock()
        self._removals = Removals()
        self.files_in_use: Callable[[], set[str]] = set
        """State files that subtasks continue from although no checkpoint refers to them yet."""
        try:
            folder.within(SHARED).make()
            folder.within(TASK_OWNED).make()
        except OSError as error:
            raise CheckpointError(f"checkpoints cannot be kept in {folder.uri}: {error}") from error

    def _folder_of(self, checkpoint_id: int) -> Folder:
        return self.folder.within(f"{CHECKPOINT_PREFIX}{checkpoint_id}")

    def path_of(self, checkpoint_id: int) -> str:
        return self.folder.path_of(f"{CHECKPOINT_PREFIX}{checkpoint_id}")

    def add(self, metadata: CheckpointMetadata) -> list[CheckpointMetadata]:
        """Make a checkpoint complete; returns those that are no longer wanted, which are to be discarded."""
        folder = self._folder_of(metadata.checkpoint_id)
        self.leadership.reserve(metadata.checkpoint_id)
        try:
            folder.make()
            folder.write(METADATA, metadata.encode())
            check_wanted()
            self.leadership.confirm(metadata.checkpoint_id, self.path_of(metadata.checkpoint_id))
        except (AbandonedError, LeadershipLostError):
            raise  # Another leader, or a job that is restored, may continue from it: it stays.
        except BaseException:
            self._doubtful.add(metadata.checkpoint_id)
            with _reporting_what_stays(folder.uri):
                self.remove_doubtful()
            raise
        with self._lock:
            self._checkpoints.append(metadata)
            dropped, self._checkpoints = self._checkpoints[: -self._retained], self._checkpoints[-self._retained :]
        return dropped

    def discard(self, checkpoints: Iterable[CheckpointMetadata]) -> None:
        """Remove checkpoints that were added and are no longer wanted, soon.

        Waits if too much has yet to be removed, so the caller must not keep `files_in_use` from answering.
        """
        self._removals.wait_for_room()
        for each in checkpoints:
            self._removals.start(self.path_of(each.checkpoint_id), partial(self._remove, each))

    def drain(self) -> None:
        """Wait until all that is unwanted is removed."""
        self._removals.drain()

    def close(self) -> None:
        """Nothing more will be added: wait until all that is unwanted is removed."""
        self._removals.close()

    def recover(self, metadata: CheckpointMetadata) -> None:
        """Continue with what the job left in the folder when another process ran it, up to this checkpoint."""
        older = sorted(each for each in checkpoint_numbers(self.folder.names()) if each < metadata.checkpoint_id)
        self._checkpoints = [*(each for number in older if (each := self._read(number)) is not None), metadata]

    def _read(self, checkpoint_id: int) -> CheckpointMetadata | None:
        """An older checkpoint, which is only kept or removed; None if the folder holds no checkpoint."""
        path = self.path_of(checkpoint_id)
        try:
            return decode_metadata(self._folder_of(checkpoint_id).read(METADATA), path)
        except (OSError, CorruptStateError) as error:
            _log.warning("%s is no checkpoint: %s", path, error)
            return None

    @property
    def has_doubtful(self) -> bool:
        """True if a checkpoint that counts as failed may be on disk."""
        return bool(self._doubtful)

    def remove_doubtful(self) -> None:
        """Make sure that no checkpoint that counts as failed is on disk. Raises OSError if that is impossible.

        A store may do what it was asked and fail to confirm it. If the job then goes back to the checkpoint before and
        dies, nobody may find the one that it has taken back.
        """
        if self._doubtful:
            self.leadership.retract()
        for checkpoint_id in sorted(self._doubtful):
            self._folder_of(checkpoint_id).delete_all()
            self._doubtful.discard(checkpoint_id)

    @contextmanager
    def holding(self, metadata: CheckpointMetadata) -> Iterator[None]:
        """Within, the checkpoint's files stay even if newer checkpoints come: they are being read."""
        with self._lock:
            self._held.append(metadata)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(metadata)
                is_retained = metadata in self._checkpoints
            if not is_retained:
                self.remove_files({handle.name for handle in metadata.handles()})

    def _remove(self, metadata: CheckpointMetadata) -> None:
        self.leadership.check()
        try:
            # The metadata goes first: without it, what remains if this process dies now is no checkpoint.
            self._folder_of(metadata.checkpoint_id).delete_all()
        finally:
            self.remove_files({handle.name for handle in metadata.handles()})

    def remove_files(self, names: set[str]) -> None:
        """Remove those of these state files that no checkpoint and no subtask needs, soon."""
        for name in names - self._wanted():
            self._removals.start(self.folder.path_of(name), partial(self.folder.delete, name))

    def _wanted(self) -> set[str]:
        in_use = self.files_in_use()
        with self._lock:
            kept = [*self._checkpoints, *self._held]
        return in_use | {handle.name for metadata in kept for handle in metadata.handles()}

    def remove_leftovers(self, region: Region) -> None:
        """Remove state files of a region that nobody wants: a run that failed left them.

        They are listed now: what the next run writes is not among them.
        """
        vertices = tuple(f"v{vertex}-" for vertex in region)
        names: list[str] = []
        with _reporting_what_stays(self.folder.path_of(SHARED)):
            names = self.folder.within(SHARED).names()
            self.leadership.check()
        self.remove_files({f"{SHARED}/{name}" for name in names if name.startswith(vertices)})

    def remove_claimed(self, found: FoundCheckpoint) -> None:
        """Remove what the job was restored from, which it owns and no longer needs, soon."""
        self._removals.start(found.path, partial(_remove_claimed, found, self._retained))

    def has_task_owned_files(self) -> bool:
        """True if sources have written files that positions refer to, or if that cannot be known now."""
        try:
            return bool(self.folder.within(TASK_OWNED).names())
        except OSError:
            return True

    def remove_all(self, keeps_task_owned: bool = False) -> None:
        """The job has ended and its checkpoints are not wanted.

        `keeps_task_owned`: files that sources have written stay. Savepoints refer to them, and do not have copies.
        """
        with self._lock:
            checkpoints, self._checkpoints = self._checkpoints, []
        self.drain()
        with _reporting_what_stays(self.folder.uri):
            # The metadata goes first here, too.
            for each in checkpoints:
                self._folder_of(each.checkpoint_id).delete_all()
            unwanted = [self.folder]
            if keeps_task_owned:
                unwanted = [self.folder.within(name) for name in self.folder.names() if name != TASK_OWNED]
            for folder in unwanted:
                folder.delete_all()


def _remove_claimed(found: FoundCheckpoint, retained: int) -> None:
    """Remove a savepoint; or a checkpoint, and those before it that its job would no longer have retained.

    A job that was killed may leave them behind. They share files with the claimed checkpoint, and would be taken for
    the newest one later. So they go before it, and files that a checkpoint in the folder still needs stay.
    """
    folder, claimed = found.folder, found.metadata
    if claimed.is_savepoint:
        remove_savepoint(folder, claimed)
        return
    numbers = sorted(checkpoint_numbers(folder.names()))
    older = [number for number in numbers if number < claimed.checkpoint_id]
    unwanted = [*older[: max(0, len(older) - retained + 1)], claimed.checkpoint_id]
    files = {number: _files_of(folder, number) for number in {*numbers, claimed.checkpoint_id}}
    for number in unwanted:
        folder.within(f"{CHECKPOINT_PREFIX}{number}").delete_all()
    wanted = set[str]().union(*(files[number] for number in numbers if number not in unwanted))
    for name in set[str]().union(*(files[number] for number in unwanted)) - wanted:
        folder.delete(name)


def _files_of(folder: Folder, number: int) -> set[str]:
    """The state files of a checkpoint; none if its folder holds no complete one."""
    checkpoint = folder.within(f"{CHECKPOINT_PREFIX}{number}")
    try:
        metadata = decode_metadata(checkpoint.read(METADATA), checkpoint.path_of(METADATA))
    except (FileNotFoundError, CorruptStateError):
        return set()
    return {handle.name for handle in metadata.handles()}


def remove_savepoint(folder: Folder, metadata: CheckpointMetadata) -> None:
    """Remove the files of a savepoint, the metadata last: a removal that was cut short can be repeated."""
    names = {handle.name for handle in metadata.handles()}
    for name in names:
        folder.delete(name)
    folder.delete(METADATA)
    above = {PurePosixPath(), *(place for name in names for place in PurePosixPath(name).parents)}
    for place in sorted(above, key=lambda place: len(place.parts), reverse=True):
        emptied = folder.within(str(place)) if place.parts else folder
        if not emptied.names():
            emptied.delete_all()


@contextmanager
def _reporting_what_stays(path: str) -> Iterator[None]:
    """A file that cannot be removed only takes up room: the job continues."""
    try:
        yield
    except (AbandonedError, LeadershipLostError):
        raise
    except Exception as error:  # Stores raise errors of their own.
        _log.warning("%s is no longer needed but cannot be removed: %s", path, error)
