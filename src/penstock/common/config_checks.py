"""Checks a configuration before a job is made of it: old names, unknown keys, keys without effect, bad values."""

from __future__ import annotations

import difflib
import logging
from typing import Any

from penstock.common.config_keys import KNOWN_OPTIONS, OLD_KEYS, WITHOUT_EFFECT
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.notices import notify

#: Passed on as they are: to the Spark session, and to reporters of metrics.
_PASSED_THROUGH = ("spark.", "metrics.reporter.")
#: Families of Flink keys that set up its Java processes: a Flink config.yaml has them, and they have no meaning here.
# fmt: off
_FLINK_ONLY = (
    "blob.", "classloader.", "cluster.", "completed-application-store.", "env.", "execution.async-state.",
    "execution.batch-", "execution.program-config.", "execution.sort", "fs.", "heartbeat.",
    "high-availability.", "historyserver.", "io.tmp.", "jobmanager.", "jobstore.", "kubernetes.", "metrics.",
    "minicluster.", "pekko.", "pipeline.watermark-alignment.", "plugin.", "python.internal.", "python.logging.",
    "resourcemanager.", "rest.", "s3.", "security.", "slot.", "slotmanager.", "state.backend.",
    "state.changelog.", "table.", "taskmanager.", "traces.", "web.", "yarn.", "zookeeper.",
)
# fmt: on

_log = logging.getLogger(__name__)


def check_keys(config: Configuration) -> None:
    """Move values from older names of keys to today's, and warn about keys that are unknown or have no effect.

    Warnings go through `warnings`, so Python shows each text once. Values are read as their type once, so that a bad
    one is an error here and not halfway through a job.
    """
    for key in sorted(config.key_set()):
        if key in OLD_KEYS:
            _rename(config, key, OLD_KEYS[key])
        elif key in KNOWN_OPTIONS:
            _check_known(config, KNOWN_OPTIONS[key])
        elif not key.startswith(_PASSED_THROUGH):
            _report_unknown(key)


def _check_known(config: Configuration, option: ConfigOption[Any]) -> None:
    if config.get(option) != option.default and option.key in WITHOUT_EFFECT:
        notify(f"configuration key {option.key!r} has no effect: {WITHOUT_EFFECT[option.key]}")


def _rename(config: Configuration, old: str, new: str) -> None:
    notify(f"configuration key {old!r} is now called {new!r}; the old name still works")
    value = config.to_dict()[old]
    config.remove_config(old)
    if not config.contains_key(new):
        config.set_string(new, value)
        _check_known(config, KNOWN_OPTIONS[new])


def _report_unknown(key: str) -> None:
    is_flinks = key.startswith(_FLINK_ONLY)
    # A key of these families is most likely Flink's own, unless it closely resembles one that works here.
    nearest = difflib.get_close_matches(key, KNOWN_OPTIONS, n=1, cutoff=0.85 if is_flinks else 0.7)
    if is_flinks and not nearest:
        _log.info("configuration key %s sets up Flink's own processes and has no effect here", key)
        return
    hint = f", did you mean {nearest[0]!r}?" if nearest else ""
    notify(f"unknown configuration key {key!r}{hint}; it has no effect")
