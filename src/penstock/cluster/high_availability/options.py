"""What the configuration says about high availability."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError

FILESYSTEM = "filesystem"
ZOOKEEPER = "zookeeper"


@dataclass(frozen=True)
class HighAvailabilityOptions:
    kind: str
    """`filesystem` or `zookeeper`: how a leader is elected."""
    directory: str
    """The cluster's own folder in high-availability.storageDir."""
    lease_ms: int
    renew_ms: int
    quorum: str
    node: str
    """ZooKeeper: the node under which contenders register."""
    session_ms: int
    connection_ms: int

    @staticmethod
    def of(config: Configuration) -> HighAvailabilityOptions | None:
        """None if it is off, as it is by default."""
        kind = _kind(config.get(keys.HIGH_AVAILABILITY))
        if kind is None:
            return None
        cluster = config.get(keys.HA_CLUSTER_ID).strip("/")
        lease_ms, renew_ms = config.get(keys.HA_LEASE_DURATION), config.get(keys.HA_RENEW_INTERVAL)
        if renew_ms <= 0 or lease_ms < 3 * renew_ms:
            raise ConfigurationError(
                f"{keys.HA_LEASE_DURATION.key} is {lease_ms} ms and {keys.HA_RENEW_INTERVAL.key} {renew_ms} ms; the "
                f"first must be at least three times the second, so that one late sign of life is not taken for death"
            )
        return HighAvailabilityOptions(
            kind,
            f"{_storage(config, kind).rstrip('/')}/{cluster or 'default'}",
            lease_ms,
            renew_ms,
            _quorum(config, kind),
            f"/{config.get(keys.ZOOKEEPER_ROOT).strip('/')}/{cluster or 'default'}/leader",
            config.get(keys.ZOOKEEPER_SESSION_TIMEOUT),
            config.get(keys.ZOOKEEPER_CONNECTION_TIMEOUT),
        )


def _kind(given: str) -> str | None:
    """Flink's names, in any case, or the name of a class that says which is meant."""
    name = given.strip().rpartition(".")[2].lower()
    if name in ("none", ""):
        return None
    for kind in (ZOOKEEPER, FILESYSTEM):
        if name.startswith(kind):
            return kind
    raise ConfigurationError(
        f"{keys.HIGH_AVAILABILITY.key}: {given!r} is not known; use none, {FILESYSTEM} or {ZOOKEEPER}"
    )


def _storage(config: Configuration, kind: str) -> str:
    storage = config.get_optional(keys.HA_STORAGE_DIR)
    if storage is None:
        raise ConfigurationError(
            f"{keys.HIGH_AVAILABILITY.key} is {kind}, but {keys.HA_STORAGE_DIR.key} is not set; name a folder that all "
            f"job managers reach"
        )
    return storage


def _quorum(config: Configuration, kind: str) -> str:
    quorum = config.get_optional(keys.ZOOKEEPER_QUORUM)
    if kind == ZOOKEEPER and quorum is None:
        raise ConfigurationError(
            f"{keys.HIGH_AVAILABILITY.key} is {kind}, but {keys.ZOOKEEPER_QUORUM.key} is not set; name ZooKeeper's "
            f"servers: host:2181,host:2181"
        )
    return quorum or ""
