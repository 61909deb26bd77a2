"""Checkpoint settings of a job, as methods over its configuration."""

from __future__ import annotations

from typing import Any

from penstock.common import config_keys
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.redaction import redacted_settings
from penstock.common.time import Duration
from penstock.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.externalized_checkpoint_retention import (
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
)

__all__ = ["CheckpointConfig", "ExternalizedCheckpointCleanup"]

_SHORTEST_MS = 10
_UNLIMITED_FAILURES = 2147483647


class CheckpointConfig:
    """How often and how checkpoints are taken. Times are in milliseconds.

    It writes through to the configuration that it was made from: a change to one shows in the other.

    >>> config = env.get_checkpoint_config().set_checkpoint_interval(60_000).set_min_pause_between_checkpoints(5_000)
    >>> env.get_configuration().to_dict()["execution.checkpointing.interval"]
    '60000'
    """

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        """True if an interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """The mode in effect; while no interval is set it is AT_LEAST_ONCE, as in Flink."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return CheckpointingMode[self._configuration.get(config_keys.CHECKPOINT_MODE).upper()]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """EXACTLY_ONCE, which is the default, or AT_LEAST_ONCE, which is not cheaper here."""
        return self._set(config_keys.CHECKPOINT_MODE, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """Time between the starts of checkpoints; -1 if checkpoints are off."""
        interval_ms = self._configuration.get(config_keys.CHECKPOINT_INTERVAL)
        return -1 if interval_ms is None else interval_ms

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Take checkpoints, one every `checkpoint_interval` milliseconds (at least 10)."""
        _at_least(_SHORTEST_MS, "checkpoint_interval", checkpoint_interval)
        return self._set(config_keys.CHECKPOINT_INTERVAL, checkpoint_interval)

    def disable_checkpointing(self) -> CheckpointConfig:
        """Take no checkpoints."""
        self._configuration.remove_config(config_keys.CHECKPOINT_INTERVAL.key)
        return self

    def get_checkpoint_timeout(self) -> int:
        """How long a checkpoint may take before it is given up."""
        return self._configuration.get(config_keys.CHECKPOINT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Give up a checkpoint that takes longer than this (at least 10)."""
        _at_least(_SHORTEST_MS, "checkpoint_timeout", checkpoint_timeout)
        return self._set(config_keys.CHECKPOINT_TIMEOUT, checkpoint_timeout)

    def get_min_pause_between_checkpoints(self) -> int:
        """The least time from the end of a checkpoint to the start of the next."""
        return self._configuration.get(config_keys.CHECKPOINT_MIN_PAUSE)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """The least time from the end of a checkpoint to the start of the next; 0 unless set."""
        _at_least(0, "min_pause_between_checkpoints", min_pause_between_checkpoints)
        return self._set(config_keys.CHECKPOINT_MIN_PAUSE, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        """The value set by `set_max_concurrent_checkpoints`."""
        return self._configuration.get(config_keys.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Accepted as in Flink; an epoch ends before the next begins, so there is never more than one at a time."""
        _at_least(1, "max_concurrent_checkpoints", max_concurrent_checkpoints)
        return self._set(config_keys.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """True if the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Fail the job on the first failed checkpoint, or on none."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _UNLIMITED_FAILURES)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail before the job does."""
        return self._configuration.get(config_keys.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """How many checkpoints in a row may fail before the job does; 0 unless set."""
        _at_least(0, "tolerable_checkpoint_failure_number", tolerable_checkpoint_failure_number)
        return self._set(config_keys.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Which checkpoints stay when the job ends: none, those of a failed job, or also those of a cancelled one."""
        return self._set(config_keys.CHECKPOINT_RETENTION, retention_mode.name)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Which checkpoints stay when the job ends."""
        name = self._configuration.get(config_keys.CHECKPOINT_RETENTION)
        return ExternalizedCheckpointRetention[name.upper()]

    # The same under the names of Flink 1.x.

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointCleanup) -> CheckpointConfig:
        """The older name of `set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointCleanup) -> CheckpointConfig:
        """The older name of `set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointCleanup:
        """The older name of `get_externalized_checkpoint_retention`."""
        return self.get_externalized_checkpoint_retention()

    def is_prefer_checkpoint_for_recovery(self) -> bool:
        """Always false: a job continues from the newest checkpoint or savepoint."""
        return False

    def set_prefer_checkpoint_for_recovery(self, prefer_checkpoint_for_recovery: bool) -> CheckpointConfig:
        """Accepted without effect: a job continues from the newest checkpoint or savepoint."""
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """True if checkpoints can outlive the job."""
        retention = self.get_externalized_checkpoint_retention()
        return retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def set_checkpoint_storage(self, storage: CheckpointStorage | str) -> CheckpointConfig:
        """Choose where checkpoints are kept; a string is a folder or URI."""
        chosen = FileSystemCheckpointStorage(storage) if isinstance(storage, str) else storage
        for key, value in chosen.configuration().items():
            self._configuration.set_string(key, value)
        return self

    def get_checkpoint_storage(self) -> CheckpointStorage:
        """Where checkpoints are kept."""
        folder = self._configuration.get_optional(config_keys.CHECKPOINT_DIR)
        return JobManagerCheckpointStorage() if folder is None else FileSystemCheckpointStorage(folder)

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Keep checkpoints in this folder or URI."""
        return self.set_checkpoint_storage(checkpoint_path)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """True if asked for and exactly-once checkpoints are on. Epochs need no alignment, so nothing changes."""
        return self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE and self._configuration.get(
            config_keys.UNALIGNED_CHECKPOINTS
        )

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accepted without effect: epochs have nothing to align."""
        return self._set(config_keys.UNALIGNED_CHECKPOINTS, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Accepted without effect: epochs have nothing to align."""
        return self.enable_unaligned_checkpoints(False)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """The value set by `set_aligned_checkpoint_timeout`."""
        return Duration.of_millis(self._configuration.get(config_keys.ALIGNED_CHECKPOINT_TIMEOUT))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Accepted without effect: epochs have nothing to align."""
        return self._set(config_keys.ALIGNED_CHECKPOINT_TIMEOUT, alignment_timeout.to_millis())

    def get_alignment_timeout(self) -> Duration:
        """The old name of `get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """The old name of `set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def is_force_unaligned_checkpoints(self) -> bool:
        """The value set by `set_force_unaligned_checkpoints`."""
        return self._configuration.get(config_keys.FORCE_UNALIGNED)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accepted without effect: epochs have nothing to align."""
        return self._set(config_keys.FORCE_UNALIGNED, force_unaligned_checkpoints)

    def _set(self, option: ConfigOption[Any], value: Any) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self

    def __repr__(self) -> str:
        settings = self._configuration.to_dict().items()
        own = {key: value for key, value in settings if key.startswith("execution.checkpointing.")}
        return f"CheckpointConfig({redacted_settings(own)!r})"


def _at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise ValueError(f"CheckpointConfig.set_{name}: {name} must be at least {least}, got {value}")
