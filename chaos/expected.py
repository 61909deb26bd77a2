"""What the all-round job must write, worked out in plain Python, and what it has written."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from chaos.all_round_job import (
    BUCKET,
    CALLS_OF_A_KEY,
    KEYS,
    SESSION_GAP,
    WINDOW,
    is_in_a_session,
    number_of_visits,
    price_of_rule,
    rule_at,
)

FOLDERS = ("windows", "sessions", "others", "region", "visits")


def expected_lines(records: int, has_other_region: bool = True) -> list[str]:
    """All lines of a run in which nothing fails, sorted."""
    prices = {number: price_of_rule(rule_at(number)) for number in range(records)}
    return sorted(
        [
            *_grouped("window", prices, lambda number: number // WINDOW),
            *_sessions(prices),
            *_stretches(prices),
            *_totals(prices),
            *(f"seventh {number} {price}" for number, price in prices.items() if number % 7 == 0),
            *(_other_regions(records) if has_other_region else []),
        ]
    )


def _grouped(name, prices, group_of) -> list[str]:
    groups = defaultdict(list)
    for number in prices:
        groups[(number % KEYS, group_of(number))].append(number)
    return [_line(name, key, numbers, prices) for (key, _), numbers in groups.items()]


def _line(name, key, numbers, prices) -> str:
    return f"{name} {key} {min(numbers)} {len(numbers)} {sum(prices[number] for number in numbers)}"


def _sessions(prices) -> list[str]:
    lines = []
    for key in range(KEYS):
        session: list[int] = []
        for number in (number for number in prices if number % KEYS == key and is_in_a_session(number)):
            # Windows that touch are one, too.
            if session and number - session[-1] > SESSION_GAP:
                lines.append(_line("session", key, session, prices))
                session = []
            session.append(number)
        if session:
            lines.append(_line("session", key, session, prices))
    return lines


def _stretches(prices) -> list[str]:
    totals: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for number, price in prices.items():
        total = totals[(number % KEYS, number // BUCKET * BUCKET + BUCKET - 1)]
        total[0] += 1
        total[1] += price
    return [f"stretch {key} {end} {count} {total}" for (key, end), (count, total) in totals.items()]


def _totals(prices) -> list[str]:
    keys = {number % KEYS for number in prices}
    of_key = {key: [price for number, price in prices.items() if number % KEYS == key] for key in keys}
    return [f"total {key} {len(each)} {sum(each)}" for key, each in of_key.items()]


def _other_regions(records: int) -> list[str]:
    visits = range(number_of_visits(records))
    calls = [(key, number + 1) for key in range(KEYS) for number in range(CALLS_OF_A_KEY)]
    return [
        *(f"region {number}" for number in range((records - 1) // 2 + 1)),
        *(f"marked {number} 2" for number in visits),
        *(f"visit {number} {number}" for number in visits),
        *(f"call {key} {number}" for key, number in calls),
    ]


def written_lines(output: Path) -> list[str]:
    """What a reader of the output sees, who passes over hidden files, sorted."""
    files = [path for folder in FOLDERS for path in (output / folder).rglob("*") if is_visible(path)]
    return sorted(line for path in files for line in path.read_text().splitlines())


def is_visible(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def differences(expected: list[str], written: list[str]) -> list[str]:
    """In words, the first few of each kind; nothing if all is well."""
    lost, extra = Counter(expected) - Counter(written), Counter(written) - Counter(expected)
    told = [f"lost: {line}" for line in list(lost.elements())[:5]]
    told += [f"too much: {line}" for line in list(extra.elements())[:5]]
    if told:
        told.append(f"{lost.total()} lines lost, {extra.total()} too much, of {len(expected)}")
    return told
