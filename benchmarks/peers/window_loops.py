"""Hand-fused loops of the programs with windows: see python_loops."""

from __future__ import annotations

from typing import Any

from benchmarks import session_windows, sliding_windows
from benchmarks.job import Setting
from benchmarks.word_count import TEXT_WORDS, WORDS_A_MS, word_of


def sessions(numbers: range, setting: Setting) -> list[Any]:
    """A session is a start, an end and a count; it is closed when time has passed its end."""
    at_a_time, visits = session_windows.USERS_AT_A_TIME, session_windows.VISITS
    gap, keeps_one_of = session_windows.GAP_SECONDS * 1000, session_windows.KEEPS_ONE_OF
    running: dict[int, tuple[int, tuple[int, int]]] = {}
    kept = []
    closed_at = -1
    for number in numbers:
        timestamp = number
        visit = number // (at_a_time * visits) * at_a_time + number % at_a_time, 1
        user = visit[0]
        found = running.get(user)
        if found is not None and timestamp <= found[0]:
            running[user] = timestamp + gap, (user, found[1][1] + visit[1])
        else:
            running[user] = timestamp + gap, visit
        # A watermark comes with every record; looking once a second costs little, as a queue of timers would.
        if timestamp >= closed_at + 1_000:
            closed_at = timestamp
            ended = [user for user, session in running.items() if session[0] <= timestamp]
            for user in ended:
                session = running.pop(user)[1]
                if session[0] % keeps_one_of == 0:
                    kept.append(session)
    return kept + [session for _, session in running.values() if session[0] % keeps_one_of == 0]


def sliding(numbers: range, setting: Setting) -> list[Any]:
    """Each reading goes into every window that it is in, as in Flink."""
    word = word_of(setting.keys, setting.has_skew)
    sensors = [word(place)[0] for place in range(TEXT_WORDS)]
    size, slide = sliding_windows.SIZE_SECONDS * 1000, sliding_windows.SLIDE_SECONDS * 1000
    largest, words = sliding_windows.LARGEST_VALUE, len(sensors)
    windows: dict[int, dict[str, tuple[str, int, int]]] = {}
    results: list[Any] = []
    next_end = None
    for number in numbers:
        timestamp = number // WORDS_A_MS
        sensor, value = sensors[number % words], number % largest
        last_start = timestamp - timestamp % slide
        for start in range(last_start, last_start - size, -slide):
            window = windows.get(start)
            if window is None:
                window = windows[start] = {}
                next_end = min(windows) + size
            _, count, total = window.get(sensor, ("", 0, 0))
            window[sensor] = sensor, count + 1, total + value
        while next_end is not None and timestamp > next_end:
            results += windows.pop(next_end - size).values()
            next_end = min(windows) + size if windows else None
    for window in windows.values():
        results += window.values()
    return results
