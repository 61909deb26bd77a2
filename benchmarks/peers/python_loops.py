"""The programs as loops that a person fused by hand: plain Python, one forked process for each half of the input.

What Penstock could reach at most, if running user code in Spark cost nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

from benchmarks import stateless_chain, word_count
from benchmarks.job import Run, Setting
from benchmarks.peers.script import run_as_script

Counts = dict[int, dict[str, int]]
"""By window and word."""


def inlined_chain(numbers: range) -> list[tuple[int, str]]:
    """No calls at all. Each step is made for each record, as written: nothing is reordered or left out."""
    kept = []
    for number in numbers:
        scaled = number * 3 + 1
        if scaled % 2 == 1:
            for half in (scaled // 2, scaled - scaled // 2):
                pair = half, "even" if half % 2 == 0 else "odd"
                if pair[0] % stateless_chain.KEEPS_ONE_OF == 0:
                    kept.append(pair)
    return kept


def calling_chain(numbers: range) -> list[tuple[int, str]]:
    """Calls the program's functions, as any system must that does not look into them."""
    scale, is_odd, halves = stateless_chain.scale, stateless_chain.is_odd, stateless_chain.halves
    label, is_kept = stateless_chain.label, stateless_chain.is_kept
    kept = []
    for number in numbers:
        scaled = scale(number)
        if is_odd(scaled):
            for half in halves(scaled):
                pair = label(half)
                if is_kept(pair):
                    kept.append(pair)
    return kept


def run_chain(loop: Callable[[range], list[tuple[int, str]]]) -> Run:
    def run(setting: Setting) -> tuple[list[Any], None]:
        return list(chain.from_iterable(in_processes(loop, setting))), None

    return run


def count_words(setting: Setting) -> tuple[list[Any], None]:
    """Each process counts its own part of the input; only counts are exchanged."""
    word = word_count.word_of(setting.keys, setting.has_skew)
    text = [word(place)[0] for place in range(word_count.TEXT_WORDS)]
    parts = in_processes(lambda numbers: counts_of(numbers, text), setting)
    return [result for counts in merged(parts).values() for result in counts.items()], None


def counts_of(numbers: range, text: list[str]) -> Counts:
    words_a_ms, window_ms, words = word_count.WORDS_A_MS, word_count.WINDOW_SECONDS * 1000, len(text)
    windows: Counts = {}
    for number in numbers:
        timestamp = number // words_a_ms
        word = text[number % words]
        start = timestamp - timestamp % window_ms
        counts = windows.get(start)
        if counts is None:
            counts = windows[start] = {}
        counts[word] = counts.get(word, 0) + 1
    return windows


def merged(parts: list[Counts]) -> Counts:
    total = parts[0]
    for part in parts[1:]:
        for start, counts in part.items():
            into = total.setdefault(start, {})
            for word, count in counts.items():
                into[word] = into.get(word, 0) + count
    return total


def in_processes(loop: Callable[[range], Any], setting: Setting) -> list[Any]:
    """What `loop` makes of each part of the input, as many parts as the parallelism."""
    ends = [setting.records * part // setting.parallelism for part in range(setting.parallelism + 1)]
    context = multiprocessing.get_context("fork")
    pipes = []
    for start, end in pairwise(ends):
        ours, theirs = context.Pipe(duplex=False)
        # Forked, so the loop need not be pickled, and nothing has to be imported again.
        process = context.Process(target=lambda out, part: out.send(loop(part)), args=(theirs, range(start, end)))
        process.start()
        theirs.close()
        pipes.append((ours, process))
    return [_received(ours, process) for ours, process in pipes]


def _received(ours: Any, process: Any) -> Any:
    result = ours.recv()  # EOFError if the process failed; it has written why.
    process.join()
    return result


RUNS: dict[str, Run] = {
    "stateless_chain": run_chain(inlined_chain),
    "calling.stateless_chain": run_chain(calling_chain),
    "word_count": count_words,
}


if __name__ == "__main__":
    run_as_script(RUNS)
