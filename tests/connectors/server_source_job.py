"""A source that reads from a server, in a job that can fail at any point."""

from __future__ import annotations

import time

from source_job import SourceJob

PATIENCE_S = 30


class ServerSourceJob(SourceJob):
    """As SourceJob; records come when the server sends them, so epochs are run until they are there."""

    def until(self, count, is_checkpoint=True):
        """Epochs until so many records came since the last start."""
        return self._while(lambda: len(self.shown) + len(self.unseen) < count, is_checkpoint)

    def to_the_end(self, is_checkpoint=True):
        self._while(lambda: not self.coordinator.is_exhausted, is_checkpoint)
        self.close()
        return self

    def _while(self, condition, is_checkpoint):
        until = time.monotonic() + PATIENCE_S
        while condition():
            assert time.monotonic() < until, f"waited {PATIENCE_S} s; got {self.shown} and {self.unseen}"
            self.epoch(is_checkpoint)
            self.now_ms = max(self.now_ms, self.wake_up_ms or 0)
        return self
