"""What the configuration says about checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError

CLAIM_MODES = ("NO_CLAIM", "CLAIM")
RETENTIONS = ("NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION")


@dataclass(frozen=True)
class CheckpointOptions:
    interval_ms: int | None = None
    """0: with every epoch; None: only when asked for."""
    min_pause_ms: int = 0
    timeout_ms: int = 600_000
    tolerable_failures: int = 0
    retained: int = 1
    retention: str = "NO_EXTERNALIZED_CHECKPOINTS"
    directory: str | None = None
    """None: with the job's other files while it runs."""
    savepoint_directory: str | None = None
    restore_path: str | None = None
    claims: bool = False
    """True if the job owns what it was restored from, and may remove it."""
    allows_non_restored: bool = False
    history: int = 10

    @staticmethod
    def of(config: Configuration) -> CheckpointOptions:
        claim_mode = _one_of(keys.CLAIM_MODE.key, config.get(keys.CLAIM_MODE), CLAIM_MODES)
        retained = config.get(keys.RETAINED_CHECKPOINTS)
        if retained < 1:
            raise ConfigurationError(f"{keys.RETAINED_CHECKPOINTS.key} must be at least 1, got {retained}")
        storage = (config.get_optional(keys.CHECKPOINT_STORAGE) or "").lower()
        directory = config.get_optional(keys.CHECKPOINT_DIR)
        if storage == "filesystem" and directory is None:
            raise ConfigurationError(
                f"{keys.CHECKPOINT_STORAGE.key} is filesystem, but {keys.CHECKPOINT_DIR.key} is not set; name a folder"
            )
        return CheckpointOptions(
            interval_ms=config.get_optional(keys.CHECKPOINT_INTERVAL),
            min_pause_ms=config.get(keys.CHECKPOINT_MIN_PAUSE),
            timeout_ms=config.get(keys.CHECKPOINT_TIMEOUT),
            tolerable_failures=config.get(keys.TOLERABLE_FAILED_CHECKPOINTS),
            retained=retained,
            retention=_one_of(keys.CHECKPOINT_RETENTION.key, config.get(keys.CHECKPOINT_RETENTION), RETENTIONS),
            directory=None if storage == "jobmanager" else directory,
            savepoint_directory=config.get_optional(keys.SAVEPOINT_DIR),
            restore_path=config.get_optional(keys.SAVEPOINT_PATH),
            claims=claim_mode == "CLAIM",
            allows_non_restored=config.get(keys.IGNORE_UNCLAIMED_STATE),
            history=config.get(keys.WEB_CHECKPOINT_HISTORY),
        )

    def with_interval(self, interval_ms: int | None) -> CheckpointOptions:
        return replace(self, interval_ms=interval_ms)

    def keeps_after(self, status: str) -> bool:
        """True if the last checkpoints stay when the job ends with `status`."""
        match status:
            case "FAILED":
                return self.retention != "NO_EXTERNALIZED_CHECKPOINTS"
            case "CANCELED":
                return self.retention == "RETAIN_ON_CANCELLATION"
            case "FINISHED":
                return False
        return True


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> str:
    found = value.upper().replace("-", "_")
    if found not in allowed:
        raise ConfigurationError(f"{key}: {value!r} is not known; use one of {', '.join(allowed)}")
    return found
