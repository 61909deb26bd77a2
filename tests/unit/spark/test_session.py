"""The SparkContext that jobs share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.spark import session


class Contexts:
    """Stands for PySpark's class: a context is active once it is made."""

    _active_spark_context: Any = None
    _gateway: Any = None

    @classmethod
    def getOrCreate(cls, conf: Any) -> Any:
        cls._active_spark_context = cls._active_spark_context or object()
        return cls._active_spark_context


class Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value


def test_jobs_that_several_threads_start_at_once_start_spark_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0
    second = threading.Event()

    def connect(settings: dict[str, str]) -> None:
        nonlocal started
        started += 1
        if started > 1:
            second.set()
        second.wait(0.3)  # Time for the others to do the same, if they may.

    monkeypatch.delenv(session.GATEWAY_PORT, raising=False)
    monkeypatch.setattr(session, "SparkContext", Contexts)
    monkeypatch.setattr(session, "SparkConf", Conf)
    monkeypatch.setattr(session, "_connect", connect)
    with ThreadPoolExecutor(4) as pool:
        contexts = list(pool.map(lambda _: session.get_context(Configuration()), range(4)))
    assert started == 1
    assert len(set(map(id, contexts))) == 1
