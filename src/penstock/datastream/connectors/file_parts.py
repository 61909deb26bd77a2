"""What a file sink's files are called, which folder they go to, and when one is finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.datastream.connectors.date_pattern import check_date_pattern, format_date


class BucketAssigner(ABC):
    """Chooses the folder, below the sink's path, that an element goes to."""

    @abstractmethod
    def bucket_of(self, element: Any, processing_time_ms: int) -> str:
        """The folder; empty for the sink's path itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files go to the sink's path itself."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """A folder per time of writing, named by a Java date pattern; the machine's time zone unless given."""
        return DateTimeBucketAssigner(format_str, timezone_id)


@dataclass(frozen=True)
class BasePathBucketAssigner(BucketAssigner):
    """All files in one folder."""

    def bucket_of(self, element: Any, processing_time_ms: int) -> str:
        return ""


@dataclass(frozen=True)
class DateTimeBucketAssigner(BucketAssigner):
    """A folder per time of writing."""

    format_str: str = "yyyy-MM-dd--HH"
    timezone_id: str | None = None

    def __post_init__(self) -> None:
        check_date_pattern(self.format_str)
        try:
            self._time_zone()
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(
                f"date_time_bucket_assigner: unknown time zone {self.timezone_id!r}; use a name such as 'Europe/Berlin'"
            ) from None

    def bucket_of(self, element: Any, processing_time_ms: int) -> str:
        return format_date(self.format_str, datetime.fromtimestamp(processing_time_ms / 1000, self._time_zone()))

    def _time_zone(self) -> tzinfo | None:
        return None if self.timezone_id is None else ZoneInfo(self.timezone_id)


class RollingPolicy(ABC):
    """Decides when a file is finished and the next one begins."""

    @abstractmethod
    def should_roll_on_checkpoint(self, part_size: int) -> bool:
        """True to finish the file at a checkpoint."""

    @abstractmethod
    def should_roll_on_event(self, part_size: int) -> bool:
        """True to finish the file before the next element."""

    @abstractmethod
    def should_roll_on_processing_time(self, created_ms: int, last_update_ms: int, now_ms: int) -> bool:
        """True to finish the file because of its age."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128, rollover_interval: int = 60 * 1000, inactivity_interval: int = 60 * 1000
    ) -> DefaultRollingPolicy:
        """By size in bytes, age and idleness in milliseconds."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """At every checkpoint."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Finishes a file when it is large, old or idle enough."""

    part_size: int
    rollover_interval_ms: int
    inactivity_interval_ms: int

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval_ms", "inactivity_interval_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"default_rolling_policy: {name} must be positive, got {getattr(self, name)}")

    def should_roll_on_checkpoint(self, part_size: int) -> bool:
        return part_size > self.part_size

    def should_roll_on_event(self, part_size: int) -> bool:
        return part_size > self.part_size

    def should_roll_on_processing_time(self, created_ms: int, last_update_ms: int, now_ms: int) -> bool:
        is_old = now_ms - created_ms >= self.rollover_interval_ms
        return is_old or now_ms - last_update_ms >= self.inactivity_interval_ms


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Finishes every file at every checkpoint."""

    def should_roll_on_checkpoint(self, part_size: int) -> bool:
        return True

    def should_roll_on_event(self, part_size: int) -> bool:
        return False

    def should_roll_on_processing_time(self, created_ms: int, last_update_ms: int, now_ms: int) -> bool:
        return False


class PartNameBuilder:
    """Collects how files are called: `part-...` without a suffix, unless set."""

    def __init__(self) -> None:
        self.part_prefix = "part"
        self.part_suffix = ""

    def with_part_prefix(self, prefix: str) -> PartNameBuilder:
        self.part_prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> PartNameBuilder:
        self.part_suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        return OutputFileConfig(self.part_prefix, self.part_suffix)


@dataclass(frozen=True)
class OutputFileConfig:
    """How files are called: `<prefix>-<unique part><suffix>`."""

    OutputFileConfigBuilder = PartNameBuilder

    part_prefix: str
    part_suffix: str

    @staticmethod
    def builder() -> PartNameBuilder:
        return PartNameBuilder()

    def get_part_prefix(self) -> str:
        return self.part_prefix

    def get_part_suffix(self) -> str:
        return self.part_suffix


class FileCompactStrategyBuilder:
    """Collects when small files are put together. A size, a number of checkpoints or both are needed."""

    def __init__(self) -> None:
        self._num_checkpoints = -1
        self._size_threshold = -1
        self._num_threads = 1

    def enable_compaction_on_checkpoint(self, num_checkpoints_before_compaction: int) -> FileCompactStrategyBuilder:
        """Put together the files of so many checkpoints."""
        if num_checkpoints_before_compaction <= 0:
            raise ValueError(
                "FileCompactStrategy: num_checkpoints_before_compaction must be positive, "
                f"got {num_checkpoints_before_compaction}"
            )
        self._num_checkpoints = num_checkpoints_before_compaction
        return self

    def set_size_threshold(self, size_threshold: int) -> FileCompactStrategyBuilder:
        """Put files together as soon as they amount to so many bytes."""
        self._size_threshold = size_threshold
        return self

    def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategyBuilder:
        if num_compact_threads <= 0:
            raise ValueError(f"FileCompactStrategy: num_compact_threads must be positive, got {num_compact_threads}")
        self._num_threads = num_compact_threads
        return self

    def build(self) -> FileCompactStrategy:
        if self._size_threshold < 0 and self._num_checkpoints <= 0:
            raise ValueError(
                "FileCompactStrategy: nothing says when to compact; call enable_compaction_on_checkpoint(n) or "
                "set_size_threshold(bytes)"
            )
        return FileCompactStrategy(self._num_checkpoints, self._size_threshold, self._num_threads)


@dataclass(frozen=True)
class FileCompactStrategy:
    """When small files are put together; -1 for a condition that is not set."""

    Builder = FileCompactStrategyBuilder

    num_checkpoints_before_compaction: int
    size_threshold: int
    num_compact_threads: int

    @staticmethod
    def builder() -> FileCompactStrategyBuilder:
        return FileCompactStrategyBuilder()


@dataclass(frozen=True)
class FileCompactor:
    """How small files are put together."""

    kind: Literal["concat", "identical"]
    file_delimiter: bytes | None = None

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """One after the other, with `file_delimiter` in between."""
        return FileCompactor("concat", file_delimiter)

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """As they are: each stays a file of its own."""
        return FileCompactor("identical")
