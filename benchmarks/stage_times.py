"""Where the time of a job goes, step by step of a record's way: CPU time per batch, without a profiler's cost per call.

`python -m benchmarks.stage_times word_count --words 1000000 --parallelism 2`
"""

from __future__ import annotations

import argparse
import functools
import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.job import add_arguments, setting_of
from benchmarks.profile_job import INLINE
from benchmarks.programs import run_in_process
from penstock.runtime import stream_task
from penstock.runtime.chunk import ChunkWriter
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.outputs import DeclaredForm, EdgeTarget
from penstock.runtime.partitioning import Dealer
from penstock.runtime.sources import SourceOperator
from penstock.runtime.stream_task import StreamTask


class Stopwatch:
    """CPU time by step. A step that is called within another stops the outer one meanwhile."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = 0.0

    def enter(self, step: str) -> None:
        self._charge()
        self._open.append(step)

    def leave(self) -> None:
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        now = time.thread_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def call(self, function: Callable[..., Any], name: Callable[[Any], str]) -> Callable[..., Any]:
        """`function`, timed; `name` gives the step from the first argument."""

        @functools.wraps(function)
        def timed(first: Any, *rest: Any, **named: Any) -> Any:
            self.enter(name(first))
            try:
                return function(first, *rest, **named)
            finally:
                self.leave()

        return timed

    def generator(self, function: Callable[..., Iterator[Any]], name: Callable[[Any], str]) -> Callable[..., Any]:
        """The same for a generator function: what runs between two of its results counts for others."""

        @functools.wraps(function)
        def timed(first: Any, *rest: Any) -> Iterator[Any]:
            advance = self.call(lambda found: next(found, found), lambda _: name(first))
            results = function(first, *rest)
            while (result := advance(results)) is not results:
                yield result

        return timed


def watch(stopwatch: Stopwatch) -> None:
    """Put the stopwatch around every step, for the rest of this process."""
    # The operators' modules are loaded when a job is built: a first run has done that.
    for cls in _family(StreamOperator):
        _wrap(cls, "process_batch", stopwatch.call, lambda it: type(it).__name__)
        _wrap(cls, "process_columns", stopwatch.call, lambda it: type(it).__name__)
        _wrap(cls, "process_watermark", stopwatch.call, lambda it: f"{type(it).__name__} at a watermark")
    for cls in _family(SourceOperator):
        _wrap(cls, "read", stopwatch.generator, lambda it: type(it).__name__)
    for cls in _family(EdgeTarget):
        _wrap(cls, "push_columns", stopwatch.call, lambda it: f"{type(it).__name__} to the next stage")
        _wrap(cls, "push_batch", stopwatch.call, lambda it: f"{type(it).__name__} to the next stage")
        _wrap(cls, "push_watermark", stopwatch.call, lambda it: f"{type(it).__name__} at a watermark")
    for cls in _family(Dealer):
        _wrap(cls, "deal_columns", stopwatch.call, lambda it: f"dealing {type(it).__name__}")
        _wrap(cls, "deal", stopwatch.call, lambda it: f"dealing {type(it).__name__}")
    _wrap(ChunkWriter, "add_batch", stopwatch.call, lambda _: "chunk: gather")
    _wrap(ChunkWriter, "take_chunks", stopwatch.generator, lambda _: "chunk: encode")
    _wrap(DeclaredForm, "__call__", stopwatch.call, lambda _: "form of the declared type")
    _wrap(stream_task, "read_chunk", stopwatch.generator, lambda _: "chunk: decode")
    _wrap(StreamTask, "run_epoch", stopwatch.generator, lambda _: "the task's own")
    _wrap(StreamTask, "snapshot", stopwatch.call, lambda _: "snapshot")


def _family(cls: type[Any]) -> list[type[Any]]:
    return [cls, *(each for child in cls.__subclasses__() for each in _family(child))]


def _wrap(owner: Any, method: str, wrapper: Callable[..., Any], name: Callable[[Any], str]) -> None:
    if method in vars(owner):
        setattr(owner, method, wrapper(vars(owner)[method], name))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stage_times", description=__doc__)
    parser.add_argument("name", help="a benchmark, such as word_count")
    add_arguments(parser)
    parser.set_defaults(words=1_000_000)
    parsed = parser.parse_args()
    setting = setting_of(parsed)
    setting = replace(setting, config={**setting.config, **INLINE})
    gc.set_threshold(100_000, 50, 100)  # As in a worker.
    run_in_process(parsed.name, setting)
    stopwatch = Stopwatch()
    watch(stopwatch)
    run_in_process(parsed.name, setting)
    total = sum(stopwatch.seconds.values())
    for step, seconds in sorted(stopwatch.seconds.items(), key=lambda item: -item[1]):
        print(f"{step:45} {seconds / setting.records * 1e9:8.0f} ns/record {seconds / total:6.1%}")
    rate = setting.records / total
    print(f"{'all':45} {total / setting.records * 1e9:8.0f} ns/record  = {rate:,.0f} records/s a core")


if __name__ == "__main__":
    main()
