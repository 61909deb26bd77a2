"""What a leader writes down about a job, for the next leader."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from penstock.checkpoint.folders import Folder, numbers_after
from penstock.checkpoint.leadership import JobLeadership
from penstock.cluster.high_availability.fence import TOKEN_DIGITS, Fence
from penstock.common.exceptions import CorruptStateError

_log = logging.getLogger(__name__)

_PREFIX = "record-"
_IDS_AT_ONCE = 1000
_PAUSE_S = 1.0


@dataclass(frozen=True)
class JobRecord:
    """How far a job has come. Each leader writes one; that of the largest token counts, whatever others write later."""

    checkpoint_id: int | None = None
    path: str | None = None
    """The checkpoint that the job continues from; None if it starts afresh."""
    last_id: int = 0
    """Ids of checkpoints up to this one may have been used."""
    ended: str | None = None
    """The status with which the job is over for good."""
    unwanted: str | None = None
    """The folder of checkpoints to remove with the job."""


class FencedJob(JobLeadership):
    """The leadership over one job: everything is written down first, and holds only if nobody else leads then."""

    def __init__(
        self, folder: Folder, fence: Fence, record: JobRecord, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._folder = folder
        self._fence = fence
        self._record = record
        self._pause = pause
        self._lock = threading.Lock()
        self.checkpoint = record.path
        self.used_ids = record.last_id
        self.has_ended = False
        """True if the job is over for good, for everybody."""

    def take(self) -> None:
        """Make the job this leader's: records of former leaders no longer count."""
        self._write()

    def reserve(self, checkpoint_id: int) -> None:
        if checkpoint_id > self._record.last_id:
            self._write(last_id=checkpoint_id + _IDS_AT_ONCE)

    def confirm(self, checkpoint_id: int, path: str) -> None:
        last_id = max(self._record.last_id, checkpoint_id + _IDS_AT_ONCE)
        self._write(checkpoint_id=checkpoint_id, path=path, last_id=last_id)

    def retract(self) -> None:
        self._write()

    def check(self) -> None:
        self._fence.check()

    def end(self, status: str, unwanted: str | None) -> None:
        """Does not give up while the storage is out of reach: the job would run again at the next leader."""
        while True:
            try:
                # A leader that slept too long often fails for that: if another one leads now, this is not the end.
                self._fence.check()
                self._write(ended=status, unwanted=unwanted)
                self.has_ended = True
                return
            except OSError as error:
                _log.warning("the end of a job (%s) cannot be recorded, trying again: %s", status, error)
                self._pause(_PAUSE_S)

    def withdraw(self) -> None:
        """Take the record back, of a job that was never run."""
        self._folder.delete(record_name(self._fence.token))

    def _write(self, **changes: object) -> None:
        with self._lock:
            record = replace(self._record, **changes)  # type: ignore[arg-type]
            self._folder.write(record_name(self._fence.token), json.dumps(asdict(record)).encode())
            self._fence.check()
            self._record = record  # It holds only now: before, a later leader may or may not have read it.


def record_name(token: int) -> str:
    return f"{_PREFIX}{token:0{TOKEN_DIGITS}d}"


def record_tokens(names: list[str]) -> list[int]:
    """The tokens of those who have written something down."""
    return sorted(numbers_after(_PREFIX, names))


def read_record(folder: Folder, token: int) -> JobRecord:
    content = folder.read(record_name(token))
    try:
        return JobRecord(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise CorruptStateError(
            f"{folder.path_of(record_name(token))} is not what a leader wrote ({error}); if the job is to end, "
            f"remove the folder it is in"
        ) from error
