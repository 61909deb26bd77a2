"""How long state lives after it was last written or read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from penstock.common.time import Duration, Time, to_milliseconds


class TtlUpdateType(Enum):
    """What renews the time to live."""

    Disabled = 0
    """Nothing expires."""

    OnCreateAndWrite = 1
    """Every write."""

    OnReadAndWrite = 2
    """Every write and every read."""


class TtlStateVisibility(Enum):
    """Whether an expired value can still be read."""

    ReturnExpiredIfNotCleanedUp = 0
    """It can, until it is removed."""

    NeverReturnExpired = 1
    """It cannot."""


class TtlClock(Enum):
    """Which time counts."""

    ProcessingTime = 0


class CleanupStrategyKind(Enum):
    """The ways expired values are removed."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class CleanupSettings:
    """Base of the settings of a way to clean up."""


@dataclass(frozen=True)
class EmptyCleanup(CleanupSettings):
    """A way to clean up without settings."""


@dataclass(frozen=True)
class IncrementalCleanup(CleanupSettings):
    """Looks at a few entries on every state access."""

    _cleanup_size: int
    _run_cleanup_for_every_record: bool

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        if cleanup_size < 0:
            raise ValueError(f"cleanup_incrementally: cleanup_size must not be negative, got {cleanup_size}")
        object.__setattr__(self, "_cleanup_size", cleanup_size)
        object.__setattr__(self, "_run_cleanup_for_every_record", run_cleanup_for_every_record)

    def get_cleanup_size(self) -> int:
        """How many entries are looked at each time."""
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """True if every record triggers it, not only state accesses."""
        return self._run_cleanup_for_every_record


@dataclass(frozen=True)
class CompactFilterCleanup(CleanupSettings):
    """Drops expired entries whenever stored state is rewritten."""

    _query_time_after_num_entries: int
    _periodic_compaction_time: Duration

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        object.__setattr__(self, "_query_time_after_num_entries", query_time_after_num_entries)
        object.__setattr__(self, "_periodic_compaction_time", periodic_compaction_time or Duration.of_days(30))

    def get_query_time_after_num_entries(self) -> int:
        """After how many entries the clock is read again."""
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """After how long unchanged stored state is rewritten."""
        return self._periodic_compaction_time


class TtlCleanup:
    """The chosen ways to clean up; with cleanup in the background those not chosen have defaults."""

    Strategies = CleanupStrategyKind
    CleanupStrategy = CleanupSettings
    EmptyCleanupStrategy = EmptyCleanup
    IncrementalCleanupStrategy = IncrementalCleanup
    RocksdbCompactFilterCleanupStrategy = CompactFilterCleanup

    EMPTY_STRATEGY: ClassVar[CleanupSettings] = EmptyCleanup()

    def __init__(
        self, strategies: Mapping[CleanupStrategyKind, CleanupSettings], is_cleanup_in_background: bool
    ) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """True unless `disable_cleanup_in_background()` was called."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """True if expired values are left out of full snapshots."""
        return CleanupStrategyKind.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanup | None:
        """The settings of incremental cleanup; None if it is off."""
        chosen = self._strategies.get(CleanupStrategyKind.INCREMENTAL_CLEANUP)
        if isinstance(chosen, IncrementalCleanup):
            return chosen
        return IncrementalCleanup(5, False) if self._is_cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> CompactFilterCleanup | None:
        """The settings of cleanup when state is rewritten; None if it is off."""
        chosen = self._strategies.get(CleanupStrategyKind.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, CompactFilterCleanup):
            return chosen
        return CompactFilterCleanup(1000) if self._is_cleanup_in_background else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TtlCleanup) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((frozenset(self._strategies.items()), self._is_cleanup_in_background))

    def __repr__(self) -> str:
        chosen = [kind.name for kind in self._strategies]
        return f"TtlCleanup({chosen}, is_cleanup_in_background={self._is_cleanup_in_background})"


class StateTtlConfigBuilder:
    """Collects the settings of a StateTtlConfig."""

    def __init__(self, ttl: Time | Duration) -> None:
        self._ttl = ttl
        self._update_type = TtlUpdateType.OnCreateAndWrite
        self._state_visibility = TtlStateVisibility.NeverReturnExpired
        self._ttl_time_characteristic = TtlClock.ProcessingTime
        self._is_cleanup_in_background = True
        self._strategies: dict[CleanupStrategyKind, CleanupSettings] = {}

    def set_update_type(self, update_type: TtlUpdateType) -> StateTtlConfigBuilder:
        """Choose what renews the time to live; writes do, unless set."""
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        """Every write renews the time to live; the default."""
        return self.set_update_type(TtlUpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        """Every write and every read renews the time to live."""
        return self.set_update_type(TtlUpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: TtlStateVisibility) -> StateTtlConfigBuilder:
        """Choose whether expired values can still be read; they cannot, unless set."""
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        """Expired values can be read until they are removed."""
        return self.set_state_visibility(TtlStateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> StateTtlConfigBuilder:
        """Expired values cannot be read; the default."""
        return self.set_state_visibility(TtlStateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlClock) -> StateTtlConfigBuilder:
        """Choose which time counts; there is only processing time."""
        self._ttl_time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> StateTtlConfigBuilder:
        """Count processing time; the default."""
        return self.set_ttl_time_characteristic(TtlClock.ProcessingTime)

    def cleanup_full_snapshot(self) -> StateTtlConfigBuilder:
        """Leave expired values out of full snapshots."""
        self._strategies[CleanupStrategyKind.FULL_STATE_SCAN_SNAPSHOT] = TtlCleanup.EMPTY_STRATEGY
        return self

    def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> StateTtlConfigBuilder:
        """Look at `cleanup_size` entries on every state access, or on every record."""
        self._strategies[CleanupStrategyKind.INCREMENTAL_CLEANUP] = IncrementalCleanup(
            cleanup_size, run_cleanup_for_every_record
        )
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
    ) -> StateTtlConfigBuilder:
        """Drop expired entries whenever stored state is rewritten."""
        self._strategies[CleanupStrategyKind.ROCKSDB_COMPACTION_FILTER] = CompactFilterCleanup(
            query_time_after_num_entries, periodic_compaction_time
        )
        return self

    def disable_cleanup_in_background(self) -> StateTtlConfigBuilder:
        """Remove expired values only when they are read, and by the strategies chosen here."""
        self._is_cleanup_in_background = False
        return self

    def set_ttl(self, ttl: Time | Duration) -> StateTtlConfigBuilder:
        """How long values live after they were last renewed."""
        self._ttl = ttl
        return self

    def build(self) -> StateTtlConfig:
        """The finished settings."""
        cleanup = TtlCleanup(self._strategies, self._is_cleanup_in_background)
        return StateTtlConfig(
            self._update_type, self._state_visibility, self._ttl_time_characteristic, self._ttl, cleanup
        )


@dataclass(frozen=True)
class StateTtlConfig:
    """Lets state expire, by processing time.

    >>> from penstock.common import Time
    >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
    >>> config.ttl_ms
    3600000
    """

    UpdateType = TtlUpdateType
    StateVisibility = TtlStateVisibility
    TtlTimeCharacteristic = TtlClock
    CleanupStrategies = TtlCleanup
    Builder = StateTtlConfigBuilder

    update_type: TtlUpdateType
    state_visibility: TtlStateVisibility
    ttl_time_characteristic: TtlClock
    ttl: Time | Duration
    cleanup_strategies: TtlCleanup

    def __post_init__(self) -> None:
        if not isinstance(self.ttl, (Time, Duration)):
            raise TypeError(f"StateTtlConfig: ttl must be a Time or Duration, got {self.ttl!r}; use Time.hours(1)")
        if self.ttl_ms <= 0:
            raise ValueError(f"StateTtlConfig: ttl must be positive, got {self.ttl_ms} ms")

    @staticmethod
    def new_builder(ttl: Time | Duration) -> StateTtlConfigBuilder:
        """Start with values that expire `ttl` after the last write and cannot be read after that."""
        return StateTtlConfigBuilder(ttl)

    @property
    def ttl_ms(self) -> int:
        """The time to live in milliseconds."""
        return to_milliseconds(self.ttl)

    def get_update_type(self) -> TtlUpdateType:
        """What renews the time to live."""
        return self.update_type

    def get_state_visibility(self) -> TtlStateVisibility:
        """Whether an expired value can still be read."""
        return self.state_visibility

    def get_ttl(self) -> Time | Duration:
        """The time to live."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> TtlClock:
        """Which time counts; always processing time."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """True if values expire at all."""
        return self.update_type is not TtlUpdateType.Disabled

    def get_cleanup_strategies(self) -> TtlCleanup:
        """How expired values are removed."""
        return self.cleanup_strategies
