"""The settings that a Spark context has started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

_known: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def context_settings(context: Any) -> Mapping[str, str]:
    """All that are set, by their keys. They stay as they are while the context lives, so Java is asked once.

    PySpark asks for each key and each value by itself: some hundred round trips, several times the other costs of
    starting a job.
    """
    settings = _known.get(context)
    if settings is None:
        settings = _known[context] = dict(context.getConf().getAll())
    return settings
