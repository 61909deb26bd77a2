"""Settings of Kafka's Java client in the form of its C client, which Python uses."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package

BOOTSTRAP_SERVERS = "bootstrap.servers"
GROUP_ID = "group.id"
CLIENT_ID_PREFIX = "client.id.prefix"
COMMIT_ON_CHECKPOINT = "commit.offsets.on.checkpoint"
DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
TRANSACTION_TIMEOUT = "transaction.timeout.ms"

# Meant for Flink or for Java's classes: elements are serialized before the client gets them.
_NOT_FOR_THE_CLIENT = {
    CLIENT_ID_PREFIX,
    COMMIT_ON_CHECKPOINT,
    DISCOVERY_INTERVAL,
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "max.poll.records",
    "register.consumer.metrics",
    "register.producer.metrics",
}
_FOR_CONSUMERS = {GROUP_ID, "auto.offset.reset", "enable.auto.commit", "isolation.level"}
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "sasl.mechanism": "sasl.mechanisms",
}
_RECONNECT_MS = 20
"""A new client waits for half of this, too, before it connects at all: 50 ms by its own default. It doubles with every
attempt that fails."""
_JAAS_FIELD = r"{}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;]+))"

_log = logging.getLogger(__name__)


def kafka_client(user: str) -> Any:
    """The package `confluent_kafka`."""
    return optional_package("confluent_kafka", "kafka", user)


def client_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings for the C client. It gets unknown ones, too, so that it refuses them by name."""
    settings = {
        _RENAMED.get(name, name): str(value) for name, value in properties.items() if name not in _NOT_FOR_THE_CLIENT
    }
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is not None:
        settings = {**_login(jaas), **settings}
    if "buffer.memory" in settings:
        settings["queue.buffering.max.kbytes"] = str(max(1, int(settings.pop("buffer.memory")) // 1024))
    if settings.get("ssl.truststore.type", "JKS").upper() == "PEM" and "ssl.truststore.location" in settings:
        del settings["ssl.truststore.type"]
        settings["ssl.ca.location"] = settings.pop("ssl.truststore.location")
    elif "ssl.truststore.location" in settings:
        raise ValueError("Kafka: Java's truststores cannot be read here; set ssl.ca.location to a file of certificates")
    return settings


def producer_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The same for a producer, without a consumer's settings: programs share one dict for both."""
    return {name: value for name, value in client_settings(properties).items() if name not in _FOR_CONSUMERS}


def _login(jaas: str) -> dict[str, str]:
    """User and password of a line such as `... required username="u" password="p";`."""
    found = {}
    for field in ("username", "password"):
        match = re.search(_JAAS_FIELD.format(field), jaas)
        if match is None:
            raise ValueError(
                f"Kafka: sasl.jaas.config has no {field}; set sasl.username and sasl.password, or for other logins "
                f"the settings of librdkafka"
            )
        found[f"sasl.{field}"] = next(group for group in match.groups() if group is not None)
    return found


class _ClientLog:
    """Logs the messages of a client, none as an error: it retries by itself, and final failures are raised."""

    def log(self, level: int, message: str, *arguments: object) -> None:
        _log.log(min(level, logging.INFO), message, *arguments)


def made_client(kind: Any, settings: Mapping[str, Any], user: str) -> Any:
    """A client of confluent_kafka; what happens on its connections goes to Python's log."""
    library = kafka_client(user)
    try:
        return kind({"error_cb": _log_error, "logger": _ClientLog(), "reconnect.backoff.ms": _RECONNECT_MS, **settings})
    except library.KafkaException as refusal:
        raise ValueError(f"{user}: {refusal.args[0].str()}; its settings are those of librdkafka") from refusal
    except (TypeError, ValueError) as refusal:
        raise ValueError(f"{user}: {refusal}") from refusal


def _log_error(error: Any) -> None:
    _log.info("Kafka client: %s", error)


def client_error(user: str, what: str, failure: Any) -> ConnectorError:
    """The error for a KafkaException or a KafkaError, in words."""
    error = failure.args[0] if isinstance(failure, Exception) and failure.args else failure
    name, text = getattr(error, "name", lambda: type(error).__name__)(), getattr(error, "str", lambda: str(error))()
    return ConnectorError(f"{user}: {what}: {text} ({name})")
