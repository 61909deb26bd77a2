"""The micro-batches of a streaming query, kept as files until they are read."""

from __future__ import annotations

import json
import logging
import posixpath
import secrets
import threading
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.file_system.input_files import find_files
from penstock.datastream.connectors.file_system.source import FilePart
from penstock.files.locations import location_within, store_at

_log = logging.getLogger(__name__)

MOST_AHEAD = 16
"""How many batches a query may be ahead of the job."""


class SpoolClosedError(Exception):
    """The job continues without this query: another one writes what it was about to write."""


class BatchSpool:
    """A folder with the rows of every batch as Parquet files.

    A batch counts when its list of files exists, which is created in one step. A query that fails, or whose process is
    killed, repeats its last batch with the same number: a batch that counts already stays as it is.
    """

    def __init__(self, folder: str, next_batch: int, most_ahead: int | None = MOST_AHEAD) -> None:
        self.folder = folder
        self._first_batch = self._next_batch = next_batch
        self._most_ahead = most_ahead
        self._files, self._path = store_at(folder)
        self._changed = threading.Condition()
        self._is_closed = False

    @property
    def query_folder(self) -> str:
        """Where Spark keeps what it knows of the query."""
        return location_within(self.folder, "query")

    # --- by the query ------------------------------------------------------------------------------------------------

    def add(self, data_frame: Any, batch_id: int) -> None:
        """Write a batch, unless it exists or was read before; waits while the job is too far behind."""
        if batch_id < self._first_batch or self._files.size_of(self._list_of(batch_id)) is not None:
            return
        self._wait_for_room(batch_id)
        rows = location_within(self.folder, f"rows/{batch_id}-{secrets.token_hex(4)}")
        data_frame.write.parquet(rows)
        found = [[file.root, file.path] for file in find_files((rows,))]
        with self._changed:
            if self._is_closed:
                raise SpoolClosedError
            self._put(self._list_of(batch_id), json.dumps(found).encode())

    def _wait_for_room(self, batch_id: int) -> None:
        ahead = self._most_ahead
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or ahead is None or batch_id < self._next_batch + ahead)
            if self._is_closed:
                raise SpoolClosedError

    def _put(self, path: str, content: bytes) -> None:
        hidden = f"{path}.{secrets.token_hex(4)}"
        with self._files.create(hidden) as file:
            file.write(content)
            self._files.sync(file, hidden)
        self._files.rename(hidden, path)

    # --- by the job --------------------------------------------------------------------------------------------------

    def take(self, batch_id: int) -> list[FilePart] | None:
        """The files of a batch; None if it is not complete yet."""
        path = self._list_of(batch_id)
        if self._files.size_of(path) is None:
            return None
        with self._files.open(path) as file:
            return [FilePart(root, found) for root, found in json.load(file)]

    def make_room(self, next_batch: int) -> None:
        """Let the query continue: the batches before this one were dealt out."""
        with self._changed:
            self._next_batch = next_batch
            self._changed.notify_all()

    def check(self) -> None:
        """JobExecutionError if the query cannot be continued where the job stands.

        Either its folder is gone: Spark would begin again, and number other rows like batches that were read. Or it has
        written the next batch, but its rows were read and removed since.
        """
        next_batch = self._first_batch
        if self._last_in("offsets") < next_batch - 1:
            raise JobExecutionError(
                f"from_data_frame: the checkpoint or savepoint continues the query in {self.folder} after its first "
                f"{next_batch} batches, but Spark's record of them is not there; it was removed with the checkpoints "
                f"of the job that ran the query, or by hand. Start without state"
            )
        if self._files.size_of(self._list_of(next_batch)) is None and self._last_in("commits") >= next_batch:
            raise JobExecutionError(
                f"from_data_frame: the checkpoint needs batch {next_batch} of the query in {self.folder}, which "
                f"was read and removed since; start from the latest checkpoint, or without state"
            )

    def _last_in(self, log: str) -> int:
        """The last batch that Spark knows to have begun (`offsets`) or to be written (`commits`); -1 for none."""
        try:
            names = [posixpath.basename(file.path) for file in find_files((location_within(self.query_folder, log),))]
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def remove(self, batch_id: int, paths: list[str]) -> None:
        """Remove a batch that was read and that no checkpoint refers to."""
        try:
            for folder in {posixpath.dirname(path) for path in paths}:
                self._files.delete_folder(folder)
            if self._files.size_of(self._list_of(batch_id)) is not None:
                self._files.delete(self._list_of(batch_id))
        except OSError as error:  # Files that cannot be removed are only in the way.
            _log.warning("batch %d in %s is read but cannot be removed: %s", batch_id, self.folder, error)

    def close(self) -> None:
        """Accept no further batches."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _list_of(self, batch_id: int) -> str:
        return f"{self._path}/batches/{batch_id}"
