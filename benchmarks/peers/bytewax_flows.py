"""The programs as Bytewax dataflows, on one worker."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.testing import TestingSink, run_main

from benchmarks import keyed_count, session_windows, stateless_chain, word_count
from benchmarks.job import Run, Setting
from benchmarks.peers.script import run_as_script

BATCH_SIZE = 10_000
"""Smaller batches are slower, larger ones hardly faster."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# A clock runs by itself while no records come: with no time to wait, a pause would make records late.
CLOCK = win.EventClock(
    ts_getter=lambda time: time,
    wait_for_system_duration=timedelta(seconds=10),
    # Our times are long past: windows close when records or the end of the input come, not by the system's clock.
    to_system_utc=lambda _: None,
)


class _NumberBatches(StatelessSourcePartition[int]):
    def __init__(self, numbers: range) -> None:
        self._left = numbers

    def next_batch(self) -> list[int]:
        if not self._left:
            raise StopIteration
        batch, self._left = self._left[:BATCH_SIZE], self._left[BATCH_SIZE:]
        return list(batch)


class Numbers(DynamicSource[int]):
    """0, 1, 2 and so on."""

    def __init__(self, records: int) -> None:
        self._records = records

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _NumberBatches:
        return _NumberBatches(range(self._records))


def count_words(numbers: Stream[int], setting: Setting) -> Stream[Any]:
    word, words_a_ms = word_count.word_of(setting.keys, setting.has_skew), word_count.WORDS_A_MS
    words = op.map("words", numbers, lambda number: (word(number)[0], _time(number // words_a_ms)))
    windows = win.TumblingWindower(length=timedelta(seconds=word_count.WINDOW_SECONDS), align_to=EPOCH)
    counts = _counts(words, windows)
    return op.map("results", counts.down, lambda found: (found[0], found[1][1]))


def sessions(numbers: Stream[int], setting: Setting) -> Stream[Any]:
    visit_of = session_windows.visit_of
    visits = op.map("visits", numbers, lambda number: (str(visit_of(number)[0]), _time(number)))
    windows = win.SessionWindower(gap=timedelta(seconds=session_windows.GAP_SECONDS))
    results = op.map("results", _counts(visits, windows).down, lambda found: (int(found[0]), found[1][1]))
    return op.filter("kept", results, session_windows.is_kept)


def _counts(up: Stream[Any], windows: win.Windower[Any]) -> win.WindowOut[Any, int]:
    return win.fold_window("counts", up, CLOCK, windows, int, lambda count, _: count + 1, operator.add, ordered=False)


def _time(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def chain(numbers: Stream[int], setting: Setting) -> Stream[Any]:
    scaled = op.map("scaled", numbers, stateless_chain.scale)
    odd = op.filter("odd", scaled, stateless_chain.is_odd)
    halves = op.flat_map("halves", odd, stateless_chain.halves)
    labelled = op.map("labelled", halves, stateless_chain.label)
    return op.filter("kept", labelled, stateless_chain.is_kept)


def count_keys(numbers: Stream[int], setting: Setting) -> Stream[Any]:
    keys, shows_one_of = setting.keys, keyed_count.SHOWS_ONE_KEY_OF

    def count(before: int | None, key: int) -> tuple[int, tuple[int, int]]:
        now = (before or 0) + 1
        return now, (key, now)

    def keyed(number: int) -> tuple[str, int]:
        key = number * 7919 % keys
        return str(key), key

    counts = op.stateful_map("counts", op.map("keyed", numbers, keyed), count)
    return op.filter("shown", op.key_rm("results", counts), lambda result: result[0] % shows_one_of == 0)


def run_of(build: Callable[[Stream[int], Setting], Stream[Any]]) -> Run:
    """Bytewax does not report what it exchanges, and one worker exchanges nothing."""

    def run(setting: Setting) -> tuple[list[Any], None]:
        results: list[Any] = []
        flow = Dataflow("benchmark")
        numbers = op.input("numbers", flow, Numbers(setting.records))
        op.output("collected", build(numbers, setting), TestingSink(results))
        run_main(flow)
        return results, None

    return run


RUNS = {
    "word_count": run_of(count_words),
    "session_windows": run_of(sessions),
    "stateless_chain": run_of(chain),
    "keyed_count": run_of(count_keys),
}


if __name__ == "__main__":
    run_as_script(RUNS)
