"""Query 11, user sessions: each person's bids without a pause of 10 seconds. One person in ten is shown."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import DataStream, EventTimeSessionWindows, StreamExecutionEnvironment, Time, Types
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.counting import CountElements, WithKeyAndWindow
from benchmarks.nexmark.events import BIDDER, TIME_MS, all_bids, bids

GAP_MS = 10_000
SHOWS_ONE_OF = 10


def is_shown(session: Any) -> bool:
    """True for a tenth of all people, among them the hot ones."""
    return bool(session[0] % SHOWS_ONE_OF == 1)


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    return (
        bids(env, setting)
        .key_by(lambda bid: bid[BIDDER], Types.LONG())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS)))
        .aggregate(
            CountElements(),
            window_function=WithKeyAndWindow(),
            accumulator_type=Types.LONG(),
            output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()]),
        )
        .filter(is_shown)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python: bids come in the order of time, so a session ends where the next bid is too late.

    One that comes exactly at its end belongs to it: in Flink, windows that touch are merged, too.
    """
    running: dict[int, tuple[int, int, int]] = {}
    sessions = []
    for bid in all_bids(setting):
        bidder, now = bid[BIDDER], bid[TIME_MS]
        count, start, end = running.get(bidder, (0, now, now + GAP_MS))
        if now > end:
            sessions.append((bidder, count, start, end))
            count, start = 0, now
        running[bidder] = count + 1, start, now + GAP_MS
    sessions += [(bidder, *session) for bidder, session in running.items()]
    return [session for session in sessions if is_shown(session)]


if __name__ == "__main__":
    run_as_script(build)
