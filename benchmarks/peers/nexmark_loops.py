"""Hand-fused loops of the Nexmark queries: see python_loops. Events are made by the functions of all versions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.job import Setting
from benchmarks.nexmark import q0, q1, q2, q5, q7, q8, q11, q12
from benchmarks.nexmark.events import A_ROUND, FIRST_BID, Bid, bid_of, is_auction, is_person, person_of


def pass_through(numbers: range, setting: Setting) -> list[Any]:
    one_of = q0.KEEPS_ONE_OF
    kept = []
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            bid = bid_of(number)
            if bid[3] % one_of == one_of - 1:
                kept.append(bid)
    return kept


def currency_conversion(numbers: range, setting: Setting) -> list[Any]:
    one_of, rate = q0.KEEPS_ONE_OF, q1.EURO_CENTS_PER_DOLLAR
    kept = []
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            auction, bidder, price, time_ms = bid_of(number)
            bid = auction, bidder, price * rate // 100, time_ms
            if bid[3] % one_of == one_of - 1:
                kept.append(bid)
    return kept


def selection(numbers: range, setting: Setting) -> list[Any]:
    one_of = q2.ONE_AUCTION_OF
    selected = []
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            bid = bid_of(number)
            if bid[0] % one_of == 0:
                selected.append((bid[0], bid[2]))
    return selected


def hot_items(numbers: range, setting: Setting) -> list[Any]:
    """Each bid goes into every window that it is in, as in Flink."""
    size, slide = q5.SIZE_MS, q5.SLIDE_MS
    windows: dict[int, dict[int, int]] = {}
    hottest: list[Any] = []
    next_end = None

    def close(start: int) -> None:
        counts = windows.pop(start)
        highest = max(counts.values())
        hottest.extend((auction, count, start, start + size) for auction, count in counts.items() if count == highest)

    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            auction, _, _, timestamp = bid_of(number)
            last_start = timestamp - timestamp % slide
            for start in range(last_start, last_start - size, -slide):
                counts = windows.get(start)
                if counts is None:
                    counts = windows[start] = {}
                    next_end = min(windows) + size
                counts[auction] = counts.get(auction, 0) + 1
            while next_end is not None and timestamp > next_end:
                close(next_end - size)
                next_end = min(windows) + size if windows else None
    for start in sorted(windows):
        close(start)
    return hottest


def highest_bid(numbers: range, setting: Setting) -> list[Any]:
    window_ms = q7.WINDOW_MS
    highest: dict[int, Bid] = {}
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            bid = bid_of(number)
            window = bid[3] // window_ms
            best = highest.get(window)
            highest[window] = best if best is not None and (best[2], best[3]) > (bid[2], bid[3]) else bid
    return list(highest.values())


def new_sellers(numbers: range, setting: Setting) -> list[Any]:
    """All elements of a window are kept until it ends, by person."""
    window_ms, no_name = q8.WINDOW_MS, q8.NO_NAME
    windows: dict[int, dict[int, list[tuple[int, str]]]] = {}
    found: list[Any] = []
    current = None

    def close(start: int) -> None:
        for person, elements in windows.pop(start).items():
            names = {element[1] for element in elements}
            if no_name in names:
                found.extend((person, name, start) for name in names - {no_name})

    for number in numbers:
        if is_person(number):
            element = person_of(number)
        elif is_auction(number):
            element = q8.seller_of(number)
        else:
            continue
        start = number - number % window_ms
        if start != current:
            if current is not None:
                close(current)
            current = start
        windows.setdefault(start, {}).setdefault(element[0], []).append(element)
    for start in list(windows):
        close(start)
    return found


def user_sessions(numbers: range, setting: Setting) -> list[Any]:
    gap, one_of = q11.GAP_MS, q11.SHOWS_ONE_OF
    running: dict[int, tuple[int, int, int]] = {}
    sessions = []
    closed_at = 0
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            _, bidder, _, now = bid_of(number)
            count, start, end = running.get(bidder, (0, now, now + gap))
            if now > end:
                sessions.append((bidder, count, start, end))
                count, start = 0, now
            running[bidder] = count + 1, start, now + gap
            # As in window_loops.sessions.
            if now >= closed_at + 1_000:
                closed_at = now
                for ended in [each for each, session in running.items() if session[2] < now]:
                    sessions.append((ended, *running.pop(ended)))
    sessions += [(bidder, *session) for bidder, session in running.items()]
    return [session for session in sessions if session[0] % one_of == 1]


def clock_windows(numbers: range, setting: Setting) -> list[Any]:
    """The clock is read for every record, as for windows of processing time it must be."""
    window_ms = q12.WINDOW_SECONDS * 1000
    windows: dict[int, dict[int, int]] = {}
    for number in numbers:
        if number % A_ROUND >= FIRST_BID:
            bidder = bid_of(number)[1]
            now = int(time.time() * 1000)
            counts = windows.setdefault(now - now % window_ms, {})
            counts[bidder] = counts.get(bidder, 0) + 1
    totals: Counter[int] = Counter()
    for counts in windows.values():
        totals.update(counts)
    return list(totals.items())


LOOPS: dict[str, Callable[[range, Setting], list[Any]]] = {
    "nexmark.q0": pass_through,
    "nexmark.q1": currency_conversion,
    "nexmark.q2": selection,
    "nexmark.q5": hot_items,
    "nexmark.q7": highest_bid,
    "nexmark.q8": new_sellers,
    "nexmark.q11": user_sessions,
    "nexmark.q12": clock_windows,
}
