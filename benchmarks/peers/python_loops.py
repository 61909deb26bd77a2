"""The programs as hand-fused loops in plain Python.

What Penstock could reach at most in one process, if everything but the user's work were free: each loop does what the
program says for every record (makes it, takes its time, finds its window, reads and writes its state, registers and
fires its timers), in order, with nothing left out of that or moved. It leaves out everything that makes it a job: an
exchange between subtasks, key groups, late records, snapshots and recovery, metrics, and the generality of operators.

`forked.` programs are the same loops in as many processes as the parallelism, each with its part of the input: only
those whose records need no others, or whose results can be merged afterwards. `calling.` ones call the program's
functions.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

from benchmarks import stateless_chain, word_count
from benchmarks.job import Run, Setting
from benchmarks.peers import file_loops, kafka_loops, keyed_loops, nexmark_loops, window_loops
from benchmarks.peers.script import run_as_script

Loop = Callable[[range, Setting], list[Any]]
Counts = dict[int, dict[str, int]]
"""By window and word."""


def inlined_chain(numbers: range, setting: Setting) -> list[tuple[int, str]]:
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


def calling_chain(numbers: range, setting: Setting) -> list[tuple[int, str]]:
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


def word_counts(numbers: range, setting: Setting) -> list[tuple[str, int]]:
    return [result for counts in counts_of(numbers, setting).values() for result in counts.items()]


def counts_of(numbers: range, setting: Setting) -> Counts:
    word_at = word_count.word_of(setting.keys, setting.has_skew)
    text = [word_at(place)[0] for place in range(word_count.TEXT_WORDS)]
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


def forked_word_counts(setting: Setting) -> tuple[list[Any], None]:
    """Each process counts its own part of the input; only counts are exchanged."""
    parts = in_processes(lambda numbers: counts_of(numbers, setting), setting)
    return [result for counts in merged(parts).values() for result in counts.items()], None


def merged(parts: list[Counts]) -> Counts:
    total = parts[0]
    for part in parts[1:]:
        for start, counts in part.items():
            into = total.setdefault(start, {})
            for word, count in counts.items():
                into[word] = into.get(word, 0) + count
    return total


def in_one(loop: Loop) -> Run:
    return lambda setting: (loop(range(setting.records), setting), None)


def forked(loop: Loop) -> Run:
    """For loops whose records need no others."""

    def run(setting: Setting) -> tuple[list[Any], None]:
        return list(chain.from_iterable(in_processes(lambda numbers: loop(numbers, setting), setting))), None

    return run


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


LOOPS: dict[str, Loop] = {
    "stateless_chain": inlined_chain,
    "word_count": word_counts,
    "session_windows": window_loops.sessions,
    "sliding_windows": window_loops.sliding,
    "keyed_count": keyed_loops.count_keys,
    "hot_key": keyed_loops.count_hundreds,
    "wide_records": keyed_loops.keep_newest,
    "keyed_timers": keyed_loops.count_until_expiry,
    "connected_join": keyed_loops.join_in_state,
    "interval_join": keyed_loops.join_intervals,
    "broadcast_rules": keyed_loops.above_limits,
    "small_jobs": keyed_loops.add_up_jobs,
    **nexmark_loops.LOOPS,
}
INDEPENDENT = ("stateless_chain", "nexmark.q0", "nexmark.q1", "nexmark.q2")
RUNS: dict[str, Run] = {
    **{name: in_one(loop) for name, loop in LOOPS.items()},
    **file_loops.RUNS,
    **kafka_loops.RUNS,
    **{f"forked.{name}": forked(LOOPS[name]) for name in INDEPENDENT},
    "forked.word_count": forked_word_counts,
    "calling.stateless_chain": in_one(calling_chain),
}


if __name__ == "__main__":
    run_as_script(RUNS)
