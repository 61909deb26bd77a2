"""Event-time windows in whole jobs: several channels, several subtasks, any number of epochs, on both targets."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import ProcessWindowFunction
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)

BOUND = 40
Event = tuple[str, int, int]
"""Key, number, timestamp."""
Result = tuple[str, int, int, tuple[int, ...]]
"""Key, window start and end, the numbers in it."""

ASSIGNERS: dict[str, WindowAssigner[Any, Any]] = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(50), Time.milliseconds(7)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(25)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(15)),
}


class Numbers(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Event]) -> Iterator[Result]:
        window: TimeWindow = context.window()
        yield key, window.start, window.end, tuple(sorted(number for _, number, _ in elements))


def events_within_bound(seed: int, count: int = 400) -> list[Event]:
    """Events in an order in which none is more than BOUND behind a younger one; with ties and gaps."""
    chance = random.Random(seed)
    events = [(chance.choice("abcde"), number, chance.randrange(0, 2000)) for number in range(count)]
    return sorted(events, key=lambda event: event[2] + chance.randrange(0, BOUND))


def expected(events: list[Event], kind: str) -> list[Result]:
    """All windows by brute force: for events within the bound nothing is late, so order does not matter."""
    panes: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    if kind == "session":
        for key in {key for key, _, _ in events}:
            for start, end, numbers in sessions(sorted((t, n) for k, n, t in events if k == key), gap=15):
                panes[(key, start, end)] = numbers
    else:
        size, slide, offset = (50, 50, 7) if kind == "tumbling" else (60, 25, 0)
        for key, number, timestamp in events:
            for start in range(-size * 2, 2100):
                if (start - offset) % slide == 0 and start <= timestamp < start + size:
                    panes[(key, start, start + size)].append(number)
    return sorted((*pane, tuple(sorted(numbers))) for pane, numbers in panes.items())


def sessions(stamped: list[tuple[int, int]], gap: int) -> Iterator[tuple[int, int, list[int]]]:
    start, end, numbers = stamped[0][0], stamped[0][0] + gap, [stamped[0][1]]
    for timestamp, number in stamped[1:]:
        if timestamp > end:
            yield start, end, numbers
            start, numbers = timestamp, []
        end = max(end, timestamp + gap)
        numbers.append(number)
    yield start, end, numbers


def run(environments: Any, events: list[Event], kind: str, epochs: int) -> list[Result]:
    env = environments(3, {"penstock.epoch.max-records": str(-(-len(events) // epochs))})
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND))
    stream = (
        env.from_collection(events)
        .rebalance()  # three channels, each in order within the bound
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda event, _: event[2]))
        .key_by(lambda event: event[0])
        .window(ASSIGNERS[kind])
        .process(Numbers())
    )
    return sorted(stream.execute_and_collect())


@pytest.mark.parametrize("kind", ASSIGNERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_windows_of_random_streams_are_those_found_by_brute_force(run_target: Any, kind: str, seed: int) -> None:
    events = events_within_bound(seed)
    assert run(run_target, events, kind, epochs=3) == expected(events, kind)


@pytest.mark.parametrize("kind", ASSIGNERS)
def test_results_do_not_depend_on_how_the_input_is_cut_into_epochs(run_target: Any, kind: str) -> None:
    events = events_within_bound(3, count=150)
    for epochs in (1, 2, 7, 50):
        assert run(run_target, events, kind, epochs) == expected(events, kind), f"{epochs} epochs"


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize("kind", ASSIGNERS)
def test_reduce_that_counts_its_calls_is_given_one_element_after_the_other(
    run_target: Any, parallelism: int, kind: str
) -> None:
    """No partial results: one of eleven elements would count as one."""
    env = run_target(parallelism)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: 10)
    pairs = env.from_collection([("a", 1)] * 20).assign_timestamps_and_watermarks(times)
    dealt = pairs.rebalance().map(lambda pair: pair, Types.TUPLE([Types.STRING(), Types.LONG()]))
    counts = dealt.key_by(lambda pair: pair[0]).window(ASSIGNERS[kind]).reduce(lambda a, b: (a[0], a[1] + 1))
    assert set(counts.execute_and_collect()) == {("a", 20)}
