"""How a file sink's files are named, which folder they go to, and when one is finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.datastream.connectors.file_system.date_pattern import check_date_pattern, format_date


class BucketAssignerContext(ABC):
    """What a bucket assigner can ask about an element."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The current processing time in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current watermark."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element; None if it has none."""


class BucketAssigner(ABC):
    """Chooses the folder, below the sink's path, that an element goes to. Subclass it for folders of your own.

    >>> class ByCountry(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"country={element['country']}"
    """

    Context = BucketAssignerContext

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketAssignerContext) -> str:
        """The folder, with `/` between its parts; empty for the sink's path itself."""

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

    def get_bucket_id(self, element: Any, context: BucketAssignerContext) -> str:
        return ""


@dataclass(frozen=True)
class DateTimeBucketAssigner(BucketAssigner):
    """A folder per time of writing."""

    format_str: str = "yyyy-MM-dd--HH"
    timezone_id: str | None = None

    def __post_init__(self) -> None:
        check_date_pattern(self.format_str)
        try:
            _time_zone(self.timezone_id)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(
                f"date_time_bucket_assigner: unknown time zone {self.timezone_id!r}; use a name such as 'Europe/Berlin'"
            ) from None

    def get_bucket_id(self, element: Any, context: BucketAssignerContext) -> str:
        return _time_folder(self.format_str, self.timezone_id, context.current_processing_time())


@lru_cache(maxsize=256)  # Many elements are written in the same millisecond.
def _time_folder(format_str: str, timezone_id: str | None, now_ms: int) -> str:
    return format_date(format_str, datetime.fromtimestamp(now_ms / 1000, _time_zone(timezone_id)))


def _time_zone(timezone_id: str | None) -> tzinfo | None:
    return None if timezone_id is None else ZoneInfo(timezone_id)


class PartFileInfo(ABC):
    """A file being written, as a rolling policy sees it.

    `RollingPolicy` has an example.
    """

    @abstractmethod
    def get_bucket_id(self) -> str:
        """The folder it is in, below the sink's path."""

    @abstractmethod
    def get_creation_time(self) -> int:
        """When it was begun, in milliseconds of processing time."""

    @abstractmethod
    def get_size(self) -> int:
        """How many bytes were written to it."""

    @abstractmethod
    def get_last_update_time(self) -> int:
        """When the last element was written to it, in milliseconds of processing time."""


class RollingPolicy(ABC):
    """Decides when a file is finished and the next one begins. Subclass it for a rule of your own.

    >>> RollingPolicy.default_rolling_policy(part_size=1024 * 1024)
    DefaultRollingPolicy(part_size=1048576, rollover_interval_ms=60000, inactivity_interval_ms=60000)
    >>> class AtHeaders(RollingPolicy):
    ...     def should_roll_on_checkpoint(self, part_file_state):
    ...         return True
    ...     def should_roll_on_event(self, part_file_state, element):
    ...         return element.startswith("#")
    ...     def should_roll_on_processing_time(self, part_file_state, current_time):
    ...         return current_time - part_file_state.get_creation_time() > 3_600_000
    """

    @abstractmethod
    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        """True to finish the file at a checkpoint."""

    @abstractmethod
    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        """True to finish the file before this element."""

    @abstractmethod
    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        """True to finish the file because of its age; asked every bucket check interval."""

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
    """Finishes a file when it is large, old or idle enough.

    `RollingPolicy` has an example.
    """

    part_size: int
    rollover_interval_ms: int
    inactivity_interval_ms: int

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval_ms", "inactivity_interval_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"default_rolling_policy: {name} must be positive, got {getattr(self, name)}")

    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        return part_file_state.get_size() > self.part_size

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return part_file_state.get_size() > self.part_size

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        is_old = current_time - part_file_state.get_creation_time() >= self.rollover_interval_ms
        return is_old or current_time - part_file_state.get_last_update_time() >= self.inactivity_interval_ms


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Finishes every file at every checkpoint.

    `RollingPolicy` has an example.
    """

    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        return True

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return False

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return False


class PartNameBuilder:
    """Collects how files are named: `part-...` without a suffix, unless set."""

    def __init__(self) -> None:
        self.part_prefix = "part"
        self.part_suffix = ""

    def with_part_prefix(self, prefix: str) -> PartNameBuilder:
        """What the names of files begin with."""
        self.part_prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> PartNameBuilder:
        """What the names of files end with, for instance `.csv`."""
        self.part_suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        """The finished names."""
        return OutputFileConfig(self.part_prefix, self.part_suffix)


@dataclass(frozen=True)
class OutputFileConfig:
    """How files are named: `<prefix>-<unique part><suffix>`.

    >>> OutputFileConfig.builder().with_part_suffix(".csv").build()
    OutputFileConfig(part_prefix='part', part_suffix='.csv')
    """

    OutputFileConfigBuilder = PartNameBuilder

    part_prefix: str
    part_suffix: str

    @staticmethod
    def builder() -> PartNameBuilder:
        """Begin to describe the names."""
        return PartNameBuilder()

    def get_part_prefix(self) -> str:
        """What the names of files begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What the names of files end with."""
        return self.part_suffix


class FileCompactStrategyBuilder:
    """Collects when small files are merged. A size, a number of checkpoints or both are needed."""

    def __init__(self) -> None:
        self._num_checkpoints = -1
        self._size_threshold = -1
        self._num_threads = 1

    def enable_compaction_on_checkpoint(self, num_checkpoints_before_compaction: int) -> FileCompactStrategyBuilder:
        """Merge the files of this many checkpoints."""
        if num_checkpoints_before_compaction <= 0:
            raise ValueError(
                "FileCompactStrategy: num_checkpoints_before_compaction must be positive, "
                f"got {num_checkpoints_before_compaction}"
            )
        self._num_checkpoints = num_checkpoints_before_compaction
        return self

    def set_size_threshold(self, size_threshold: int) -> FileCompactStrategyBuilder:
        """Merge files as soon as they amount to this many bytes."""
        self._size_threshold = size_threshold
        return self

    def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategyBuilder:
        """Accepted as in Flink, without effect: each subtask merges its own files."""
        if num_compact_threads <= 0:
            raise ValueError(f"FileCompactStrategy: num_compact_threads must be positive, got {num_compact_threads}")
        self._num_threads = num_compact_threads
        return self

    def build(self) -> FileCompactStrategy:
        """The strategy; ValueError if neither a size nor a number of checkpoints is set."""
        if self._size_threshold < 0 and self._num_checkpoints <= 0:
            raise ValueError(
                "FileCompactStrategy: nothing says when to compact; call enable_compaction_on_checkpoint(n) or "
                "set_size_threshold(bytes)"
            )
        return FileCompactStrategy(self._num_checkpoints, self._size_threshold, self._num_threads)


@dataclass(frozen=True)
class FileCompactStrategy:
    """When small files are merged; -1 for a condition that is not set.

    >>> strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(10).build()
    """

    Builder = FileCompactStrategyBuilder

    num_checkpoints_before_compaction: int
    size_threshold: int
    num_compact_threads: int

    @staticmethod
    def builder() -> FileCompactStrategyBuilder:
        """Begin to describe a strategy."""
        return FileCompactStrategyBuilder()


@dataclass(frozen=True)
class FileCompactor:
    """How small files are merged.

    >>> one_after_the_other = FileCompactor.concat_file_compactor()
    """

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
