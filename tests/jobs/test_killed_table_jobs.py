"""A table job with a join and aggregates on Spark whose workers are killed: its result is exact, and it continues."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from benchmarks.nexmark_sql.events import events, write_events
from benchmarks.nexmark_sql.queries import statements

from penstock.table import DataTypes, StreamTableEnvironment
from penstock.table.udf import ScalarFunction, udf

pytestmark = pytest.mark.spark

EVENTS, STEP_MS = 1_000, 100
FATAL_BIDS = (400, 700)
"""The numbers of the bids at which a worker is killed, the first time that they come."""
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "execution.checkpointing.interval": "1 ms",
    "penstock.epoch.max-records": "25",
}
QUERY = """
    SELECT category, COUNT(*) AS auctions, SUM(bids) AS bids, SUM(highest) AS highest, MIN(bidders) AS fewest_bidders
    FROM (
        SELECT a.id, a.category, COUNT(*) AS bids, MAX(b.price) AS highest, COUNT(DISTINCT b.bidder) AS bidders
        FROM auction AS a JOIN noted_bid AS b ON a.id = b.auction
        GROUP BY a.id, a.category
    )
    GROUP BY category"""


class NotesBids(ScalarFunction):
    """Returns the price; leaves a byte for each call, and kills its process at some bids, each once."""

    def __init__(self, folder: Path, fatal: frozenset[tuple[int, str]]) -> None:
        self.folder, self.fatal = folder, fatal

    def eval(self, price: int, url: str) -> int:
        with open(self.folder / "calls", "ab") as file:
            file.write(b".")
        if (price, url) in self.fatal and not (self.folder / str(price)).exists():
            (self.folder / str(price)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return price


def in_parts(file: Path, lines_each: int) -> None:
    """Makes of the file a folder of small ones: an epoch reads at least one."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.unlink()
    file.mkdir()
    for start in range(0, len(lines), lines_each):
        (file / f"{start:06}.json").write_text("".join(lines[start : start + lines_each]), encoding="utf-8")


def expected(found: list[dict[str, Any]]) -> dict[int, tuple[int, ...]]:
    """The answer in plain Python."""
    auctions = {each["auction"]["id"]: each["auction"]["category"] for each in found if each["auction"]}
    bids: dict[int, list[dict[str, Any]]] = {}
    for each in found:
        if each["bid"] and each["bid"]["auction"] in auctions:
            bids.setdefault(each["bid"]["auction"], []).append(each["bid"])
    result = {}
    for category in {auctions[each] for each in bids}:
        groups = [group for auction, group in bids.items() if auctions[auction] == category]
        result[category] = (
            len(groups),
            sum(map(len, groups)),
            sum(max(bid["price"] for bid in group) for group in groups),
            min(len({bid["bidder"] for bid in group}) for group in groups),
        )
    return result


def test_result_is_exact_when_workers_are_killed(on_spark: Any, tmp_path: Path):
    found = list(events(EVENTS, STEP_MS))
    bids = [each["bid"] for each in found if each["bid"]]
    fatal = [(bids[number]["price"], bids[number]["url"]) for number in FATAL_BIDS]
    write_events(tmp_path, EVENTS, STEP_MS)
    in_parts(tmp_path / "events.json", 50)
    t_env = StreamTableEnvironment.create(on_spark(2, RESTARTS))
    function = udf(NotesBids(tmp_path, frozenset(fatal)), result_type=DataTypes.BIGINT())
    t_env.create_temporary_system_function("noted", function)
    for statement in statements(tmp_path):
        t_env.execute_sql(statement)
    t_env.execute_sql("CREATE TEMPORARY VIEW noted_bid AS SELECT auction, bidder, noted(price, url) AS price FROM bid")

    result: dict[int, tuple[int, ...]] = {}
    with t_env.execute_sql(QUERY).collect() as rows:
        for row in rows:
            category, *values = row
            if str(row.get_row_kind()) in ("+I", "+U"):
                result[category] = tuple(values)
            else:  # What is taken back is what was there: no change was lost, and none came twice.
                assert result.pop(category) == tuple(values)

    assert result == expected(found)
    assert all((tmp_path / str(price)).exists() for price, _ in fatal)
    # From the beginning, each time, it would be 400 + 700 more.
    assert len(bids) <= (tmp_path / "calls").stat().st_size < len(bids) + FATAL_BIDS[0]
