"""Query 8, new sellers: people who opened an auction within the same 10 seconds in which they came.

A join of two streams in a window; since PyFlink's API has no joins, it is written as Flink runs it: as a union of both,
each with a mark of where it is from, in one window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    Types,
)
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import auction_of, is_auction, is_person, numbers, person_of

WINDOW_MS = 10_000
NO_NAME = ""
"""Marks the seller of an auction, beside people with their names."""


def seller_of(number: int) -> tuple[int, str]:
    return auction_of(number)[1], NO_NAME


class NewSellers(ProcessWindowFunction):  # type: ignore[misc, type-arg, unused-ignore]
    """Person, name and the window's start, where a window has the person and an auction of theirs."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        names = {element[1] for element in elements}
        if NO_NAME in names:
            for name in names - {NO_NAME}:
                yield key, name, context.window().start


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    events = numbers(env, setting)
    named = Types.TUPLE([Types.LONG(), Types.STRING()])
    people = events.filter(is_person).map(person_of, named)
    sellers = events.filter(is_auction).map(seller_of, named)
    return (
        people.union(sellers)
        .key_by(lambda pair: pair[0], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .process(NewSellers(), Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]))
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    people = {person_of(number): number // WINDOW_MS for number in range(setting.records) if is_person(number)}
    sellers = {(seller_of(number)[0], number // WINDOW_MS) for number in range(setting.records) if is_auction(number)}
    return [
        (person, name, window * WINDOW_MS) for (person, name), window in people.items() if (person, window) in sellers
    ]


if __name__ == "__main__":
    run_as_script(build)
