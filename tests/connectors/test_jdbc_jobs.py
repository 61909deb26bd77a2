"""JdbcSink in whole jobs, which fail and come back; the same on both targets."""

from __future__ import annotations

import uuid

from penstock.common import Types
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcSink

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "10",
}


class FailsAt:
    """Passes numbers on as rows, and fails once at each of some of them, whatever process asks."""

    def __init__(self, folder, *numbers):
        self._folder = folder
        self._numbers = numbers

    def __call__(self, number):
        mark = self._folder / f"failed-at-{number}"
        if number in self._numbers and not mark.exists():
            mark.touch()
            raise RuntimeError(f"no {number} today")
        return (number, f"number {number}")


def test_job_that_fails_writes_each_row_once(postgres, run_target, tmp_path):
    table = f"t_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"create table {table} (number int, name text)")
    sink = JdbcSink.exactly_once_sink(
        f"insert into {table} values (?, ?)",
        Types.ROW([Types.INT(), Types.STRING()]),
        JdbcConnectionOptions(postgres.url, user_name=postgres.user),
        JdbcExactlyOnceOptions.builder().with_transaction_prefix(table).build(),
    )
    env = run_target(2, RESTARTS)
    env.from_collection(list(range(40))).rebalance().map(FailsAt(tmp_path, 7, 33, 39)).sink_to(sink).name("to postgres")
    env.execute()
    with postgres.connect() as connection:
        found = connection.execute(f"select * from {table} order by number").fetchall()
        left = connection.execute("select gid from pg_prepared_xacts").fetchall()
    assert found == [(number, f"number {number}") for number in range(40)]
    assert [gid for (gid,) in left if gid.startswith(table)] == []


def test_old_way_to_add_the_sink_writes_at_least_once(postgres, run_target):
    table = f"t_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"create table {table} (number int)")
    row = Types.ROW([Types.INT()])
    sink = JdbcSink.sink(f"insert into {table} values (?)", row, JdbcConnectionOptions(postgres.url, None, "penstock"))
    env = run_target()
    env.from_collection([(1,), (2,)]).add_sink(sink)
    env.execute()
    with postgres.connect() as connection:
        assert connection.execute(f"select number from {table} order by 1").fetchall() == [(1,), (2,)]
