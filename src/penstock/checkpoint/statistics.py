"""What is known about the checkpoints of a job, for people and for the REST API."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class SubtaskStats:
    subtask: int
    ack_timestamp_ms: int
    snapshot_ms: int
    """How long it took to write the subtask's snapshot."""
    state_size: int
    """All files the subtask would be restored from."""
    checkpointed_size: int
    """What was written for this checkpoint."""


@dataclass
class CheckpointStats:
    id: int
    trigger_timestamp_ms: int
    num_subtasks: int
    is_savepoint: bool = False
    savepoint_format: str | None = None
    status: Literal["IN_PROGRESS", "COMPLETED", "FAILED"] = "IN_PROGRESS"
    latest_ack_timestamp_ms: int | None = None
    num_acknowledged: int = 0
    state_size: int = 0
    checkpointed_size: int = 0
    external_path: str | None = None
    discarded: bool = False
    failure_message: str | None = None
    failure_timestamp_ms: int | None = None
    tasks: dict[int, list[SubtaskStats]] = field(default_factory=dict)
    """By vertex number."""

    @property
    def duration_ms(self) -> int:
        return max(0, (self.latest_ack_timestamp_ms or self.trigger_timestamp_ms) - self.trigger_timestamp_ms)


@dataclass(frozen=True)
class RestoredStats:
    id: int
    restore_timestamp_ms: int
    is_savepoint: bool
    external_path: str | None


class CheckpointStatsTracker:
    """Counts all, and remembers the newest. Written by the job's thread, read by any."""

    def __init__(self, remembered: int = 10) -> None:
        self._lock = threading.Lock()
        self._history: deque[CheckpointStats] = deque(maxlen=max(1, remembered))
        self._completed_durations: deque[int] = deque(maxlen=1000)
        self._completed_sizes: deque[int] = deque(maxlen=1000)
        self._completed_writes: deque[int] = deque(maxlen=1000)
        self._counts = {"restored": 0, "total": 0, "in_progress": 0, "completed": 0, "failed": 0}
        self.latest_completed: CheckpointStats | None = None
        self.latest_failed: CheckpointStats | None = None
        self.latest_savepoint: CheckpointStats | None = None
        self.restored: RestoredStats | None = None

    def started(self, stats: CheckpointStats) -> None:
        with self._lock:
            self._history.appendleft(stats)
            self._counts["total"] += 1
            self._counts["in_progress"] += 1

    def completed(self, stats: CheckpointStats) -> None:
        with self._lock:
            stats.status = "COMPLETED"
            self._counts["in_progress"] -= 1
            self._counts["completed"] += 1
            self._completed_durations.append(stats.duration_ms)
            self._completed_sizes.append(stats.state_size)
            self._completed_writes.append(stats.checkpointed_size)
            self.latest_completed = stats
            if stats.is_savepoint:
                self.latest_savepoint = stats

    def failed(self, stats: CheckpointStats, message: str, now_ms: int) -> None:
        with self._lock:
            stats.status, stats.failure_message, stats.failure_timestamp_ms = "FAILED", message, now_ms
            self._counts["in_progress"] -= 1
            self._counts["failed"] += 1
            self.latest_failed = stats

    def discarded(self, removed: list[int]) -> None:
        with self._lock:
            for stats in self._history:
                stats.discarded = stats.discarded or stats.id in removed

    def restored_from(self, restored: RestoredStats) -> None:
        with self._lock:
            self._counts["restored"] += 1
            self.restored = restored

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def history(self) -> list[CheckpointStats]:
        """Newest first."""
        with self._lock:
            return list(self._history)

    def summary(self) -> dict[str, list[int]]:
        """Durations in milliseconds and state sizes in bytes of the completed checkpoints."""
        with self._lock:
            return {
                "end_to_end_duration": list(self._completed_durations),
                "state_size": list(self._completed_sizes),
                "checkpointed_size": list(self._completed_writes),
            }
