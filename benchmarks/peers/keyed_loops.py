"""Hand-fused loops of the programs with keyed state: see python_loops."""

from __future__ import annotations

import heapq
from typing import Any

from benchmarks import broadcast_rules, connected_join, hot_key, keyed_count, keyed_timers, small_jobs, wide_records
from benchmarks.job import Setting


def count_keys(numbers: range, setting: Setting) -> list[Any]:
    keys, shows_one_of = setting.keys, keyed_count.SHOWS_ONE_KEY_OF
    counts: dict[int, int] = {}
    shown = []
    for number in numbers:
        pair = number * 7919 % keys, number
        key = pair[0]
        count = counts.get(key, 0) + 1
        counts[key] = count
        if key % shows_one_of == 0:
            shown.append((key, count))
    return shown


def count_hundreds(numbers: range, setting: Setting) -> list[Any]:
    keys, shows_one_of = setting.keys, hot_key.SHOWS_ONE_COUNT_OF
    counts: dict[int, int] = {}
    shown = []
    for number in numbers:
        pair = 0 if number % 10 else number * 7919 % keys, number
        key = pair[0]
        count = counts.get(key, 0) + 1
        counts[key] = count
        if count % shows_one_of == 0:
            shown.append((key, count))
    return shown


def keep_newest(numbers: range, setting: Setting) -> list[Any]:
    """Rows are lists: what a Row is besides is not the user's work."""
    keys, kinds, shows_one_of = setting.keys, wide_records.KINDS, wide_records.SHOWS_ONE_CUSTOMER_OF
    texts = [wide_records.texts_of(kind) for kind in range(kinds)]
    newest: dict[int, list[Any]] = {}
    shown = []
    for number in numbers:
        row: list[Any] = [number * 7919 % keys, 0, *texts[number % kinds]]
        before = newest.get(row[0])
        row[1] = 1 if before is None else before[1] + 1
        newest[row[0]] = row
        if row[0] % shows_one_of == 0:
            shown.append((row[0], row[1]))
    return shown


def count_until_expiry(numbers: range, setting: Setting) -> list[Any]:
    """A set of keys for each time of a timer, and a heap of those times."""
    keys, items, items_a_ms = setting.keys, keyed_timers.ITEMS, keyed_timers.ITEMS_A_MS
    patience, keeps_one_of, a_round = keyed_timers.PATIENCE_MS, keyed_timers.KEEPS_ONE_OF, setting.keys * items
    counts: dict[int, int] = {}
    timers: dict[int, set[int]] = {}
    times: list[int] = []
    kept = []

    def fire(until: float) -> None:
        while times and times[0] < until:
            for key in timers.pop(heapq.heappop(times)):
                count = counts.pop(key)
                if key % keeps_one_of == 0:
                    kept.append((key, count))

    for number in numbers:
        timestamp = number // items_a_ms
        turn = number // a_round
        item = turn * keys + number % keys, (turn + 1) * a_round // items_a_ms + patience
        key, expiry = item
        counts[key] = counts.get(key, 0) + 1
        at_expiry = timers.get(expiry)
        if at_expiry is None:
            at_expiry = timers[expiry] = set()
            heapq.heappush(times, expiry)
        at_expiry.add(key)
        if times[0] < timestamp:
            fire(timestamp)
    fire(float("inf"))
    return kept


def join_in_state(numbers: range, setting: Setting) -> list[Any]:
    """An order and a payment in turn: so both streams advance side by side, and a timer per order clears both sides."""
    within, delay, every = connected_join.WITHIN_MS, connected_join.MEAN_DELAY_MS, connected_join.EVERY_MS
    block, keeps_one_of = connected_join.A_BLOCK, connected_join.KEEPS_ONE_OF
    ordered: dict[int, int] = {}
    paid: dict[int, int] = {}
    timers: list[tuple[int, int]] = []
    kept = []
    for number in range(len(numbers) // 2):
        order = number, number * every
        at = paid.get(order[0])
        if at is None:
            ordered[order[0]] = order[1]
            heapq.heappush(timers, (order[1] + within, order[0]))
        elif 0 <= at - order[1] <= within:
            joined = order[0], at - order[1]
            if joined[0] % keeps_one_of == 0:
                kept.append(joined)
        payment = number // block * block + block - 1 - number % block, number * every + delay
        at = ordered.get(payment[0])
        if at is None:
            paid[payment[0]] = payment[1]
            heapq.heappush(timers, (payment[1], payment[0]))
        elif 0 <= payment[1] - at <= within:
            joined = payment[0], payment[1] - at
            if joined[0] % keeps_one_of == 0:
                kept.append(joined)
        # Time is that of the stream which is behind.
        while timers and timers[0][0] < order[1]:
            _, key = heapq.heappop(timers)
            ordered.pop(key, None)
            paid.pop(key, None)
    return kept


def join_intervals(numbers: range, setting: Setting) -> list[Any]:
    """As Flink does it: both sides are kept in lists by time, and each record looks at the other side."""
    within, delay, every = connected_join.WITHIN_MS, connected_join.MEAN_DELAY_MS, connected_join.EVERY_MS
    block, keeps_one_of = connected_join.A_BLOCK, connected_join.KEEPS_ONE_OF
    left: dict[int, dict[int, list[tuple[int, int]]]] = {}
    right: dict[int, dict[int, list[tuple[int, int]]]] = {}
    timers: list[tuple[int, int, bool]] = []
    kept = []
    for number in range(len(numbers) // 2):
        order = number, number * every
        key, time = order
        left.setdefault(key, {}).setdefault(time, []).append(order)
        for at, payments in right.get(key, {}).items():
            if time <= at <= time + within:
                kept += [(key, payment[1] - time) for payment in payments if key % keeps_one_of == 0]
        heapq.heappush(timers, (time + within, key, True))
        payment = number // block * block + block - 1 - number % block, number * every + delay
        key, time = payment
        right.setdefault(key, {}).setdefault(time, []).append(payment)
        for at, orders in left.get(key, {}).items():
            if time - within <= at <= time:
                kept += [(key, time - order[1]) for order in orders if key % keeps_one_of == 0]
        heapq.heappush(timers, (time, key, False))
        while timers and timers[0][0] < number * every:
            _, key, is_left = heapq.heappop(timers)
            (left if is_left else right).pop(key, None)
    return kept


def above_limits(numbers: range, setting: Setting) -> list[Any]:
    """The rules are there before the payments, so none waits for its rule."""
    keys, categories, amounts = setting.keys, broadcast_rules.CATEGORIES, broadcast_rules.AMOUNTS
    limits = dict(broadcast_rules.RULES)
    above: dict[int, int] = {}
    results = []
    for number in numbers:
        payment = number * 7919 % keys, number % categories, number * 6151 % amounts, number
        if payment[2] > limits[payment[1]]:
            count = above.get(payment[0], 0) + 1
            above[payment[0]] = count
            results.append((payment[0], count))
    return results


def add_up_jobs(numbers: range, setting: Setting) -> list[tuple[int, int, int]]:
    """One job after the other."""
    results = []
    for first in numbers[:: small_jobs.RECORDS_A_JOB]:
        sums: dict[int, tuple[int, int, int]] = {}
        for number in range(first, first + small_jobs.RECORDS_A_JOB):
            key = number % small_jobs.KEYS
            before = sums.get(key)
            after = sums[key] = (key, 1, number) if before is None else (key, before[1] + 1, before[2] + number)
            if after[1] == small_jobs.RECORDS_A_JOB // small_jobs.KEYS:
                results.append(after)
    return results
