"""Settings of a Spark context are asked for once."""

from __future__ import annotations

import gc

from penstock.spark.context_settings import context_settings


class Context:
    """Counts how often it is asked."""

    def __init__(self, **settings: str) -> None:
        self.asked = 0
        self._settings = settings

    def getConf(self) -> Context:
        self.asked += 1
        return self

    def getAll(self) -> list[tuple[str, str]]:
        return list(self._settings.items())


def test_a_context_is_asked_once_whoever_wants_to_know() -> None:
    context = Context(a="1")
    assert [dict(context_settings(context)) for _ in range(3)] == [{"a": "1"}] * 3
    assert context.asked == 1


def test_each_context_has_settings_of_its_own() -> None:
    first = Context(a="1")
    assert context_settings(first)["a"] == "1"
    del first  # As when a session is stopped, and the next one starts.
    gc.collect()
    assert context_settings(Context(a="2"))["a"] == "2"
