"""JdbcSink against a real PostgreSQL."""

from __future__ import annotations

import tempfile
import uuid
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from server_sink_job import ServerSinkJob

from penstock.common import Instant, Row, Types
from penstock.common.exceptions import ConnectorError, JobExecutionError, UnsupportedFeatureError
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from penstock.datastream.connectors.jdbc.statements import Statement, connection_settings
from penstock.datastream.connectors.support.refused_records import REFUSED_METRIC, OnRefused

NUMBER = Types.ROW([Types.INT()])


@pytest.fixture
def table(postgres):
    name = f"t_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"create table {name} (number int primary key)")
    return name


def options(postgres):
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    return builder.with_url(postgres.url).with_user_name(postgres.user).build()


def rows(postgres, table):
    with postgres.connect() as connection:
        return connection.execute(f"select * from {table} order by 1").fetchall()


def numbers(postgres, table):
    return [row[0] for row in rows(postgres, table)]


def prepared(postgres, prefix):
    with postgres.connect() as connection:
        found = connection.execute("select gid from pg_prepared_xacts").fetchall()
    return sorted(gid for (gid,) in found if gid.startswith(prefix))


def insert(postgres, table, **execution):
    execution_options = JdbcExecutionOptions(**execution)
    return JdbcSink.sink(f"insert into {table} values (?)", NUMBER, options(postgres), execution_options)


def exactly_once(postgres, table, prefix, **settings):
    names = JdbcExactlyOnceOptions(prefix, **settings)
    return JdbcSink.exactly_once_sink(f"insert into {table} values (?)", NUMBER, options(postgres), names)


# --- statements and URLs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "translated", "places"),
    [
        ("insert into t values (?, ?)", "insert into t values (%s, %s)", 2),
        ("values ('why?', ?)", "values ('why?', %s)", 1),
        ("values ('it''s ?', ?)", "values ('it''s ?', %s)", 1),
        ('update "a?b" set x = ?', 'update "a?b" set x = %s', 1),
        ("select ? -- really?\n, ?", "select %s -- really?\n, %s", 2),
        ("select /* ? */ ?", "select /* ? */ %s", 1),
        ("select $$?$$, $a$?$a$, ?", "select $$?$$, $a$?$a$, %s", 1),
        (r"select E'\'?', ?", r"select E'\'?', %s", 1),
        ("select doc ?? 'key', n % 2, like '%x' where ? > 0", "select doc ? 'key', n %% 2, like '%%x' where %s > 0", 1),
    ],
)
def test_places_of_jdbc_become_those_of_the_client(sql, translated, places):
    assert Statement.of(sql) == Statement(translated, places, sql)


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("jdbc:postgresql://db:5433/shop", {"host": "db", "port": "5433", "dbname": "shop"}),
        ("jdbc:postgresql://db/shop", {"host": "db", "port": "5432", "dbname": "shop"}),
        ("jdbc:postgresql://a,b:1/shop", {"host": "a,b", "port": "5432,1", "dbname": "shop"}),
        ("jdbc:postgresql://[::1]:5/x%20y", {"host": "::1", "port": "5", "dbname": "x y"}),
        ("jdbc:postgresql:shop", {"dbname": "shop"}),
        (
            "jdbc:postgresql://h/d?user=u&password=p%26q&ssl=true&currentSchema=s&reWriteBatchedInserts=true",
            {
                "host": "h",
                "port": "5432",
                "dbname": "d",
                "user": "u",
                "password": "p&q",
                "sslmode": "verify-full",
                "options": "-c search_path=s",
            },
        ),
        *(
            (
                f"jdbc:postgresql://h/d?{query}",
                {
                    "host": "h",
                    "port": "5432",
                    "dbname": "d",
                    "options": "-c statement_timeout=9 -c search_path=s,\\ t",
                },
            )
            for query in (
                "currentSchema=s,%20t&options=-c%20statement_timeout=9",
                "options=-c%20statement_timeout=9&currentSchema=s,%20t",
            )
        ),
    ],
)
def test_urls_of_jdbc_are_understood(url, settings):
    assert connection_settings(url, None, None) == settings


def test_user_and_password_of_the_options_win():
    settings = connection_settings("jdbc:postgresql://h/d?user=u&password=p", "me", "secret")
    assert (settings["user"], settings["password"]) == ("me", "secret")


def test_other_databases_are_refused_when_the_sink_is_built():
    elsewhere = JdbcConnectionOptions("jdbc:oracle:thin:@db")
    with pytest.raises(UnsupportedFeatureError, match=r"'jdbc:oracle:thin:@db' names none of the databases"):
        JdbcSink.sink("insert into t values (?)", NUMBER, elsewhere)
    with pytest.raises(ValueError, match=r"the parameter 'nonsense' of 'jdbc:postgresql://db/shop' is not one of"):
        JdbcSink.sink("insert into t values (?)", NUMBER, JdbcConnectionOptions("jdbc:postgresql://db/shop?nonsense=1"))


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match=r"transactions need a name of 1 to 128 bytes, got ''"):
        JdbcExactlyOnceOptions.builder().build()
    retries = JdbcExecutionOptions(max_retries=1)
    names = JdbcExactlyOnceOptions.builder().with_transaction_prefix("p").build()
    with pytest.raises(ValueError, match="set max_retries to 0, got 1"):
        JdbcSink.exactly_once_sink("select ?", NUMBER, JdbcConnectionOptions("jdbc:postgresql:x"), names, retries)


# --- at least once ---------------------------------------------------------------------------------------------------


def test_rows_of_all_kinds_are_written(postgres, tmp_path):
    table = f"kinds_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(
            f"create table {table} (i int, t text, d double precision, n numeric, b boolean, y bytea, at timestamptz, "
            f"a int[], e text)"
        )
    kinds = [Types.INT(), Types.STRING(), Types.DOUBLE(), Types.BIG_DEC(), Types.BOOLEAN(), Types.PICKLED_BYTE_ARRAY()]
    row_type = Types.ROW([*kinds, Types.INSTANT(), Types.BASIC_ARRAY(Types.INT()), Types.STRING()])
    row = Row(1, "ünï'c?", 2.5, Decimal("12.340"), True, b"\x00\xff", Instant(1, 5_000_000), [1, 2], None)
    statement = f"insert into {table} values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ServerSinkJob(JdbcSink.sink(statement, row_type, options(postgres)), tmp_path, lambda _: row).write().end()
    at = datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=timezone.utc)
    assert rows(postgres, table) == [(1, "ünï'c?", 2.5, Decimal("12.340"), True, b"\x00\xff", at, [1, 2], None)]


def test_batch_is_written_when_it_is_full_or_old_or_a_checkpoint_is_taken(postgres, table, tmp_path):
    job = ServerSinkJob(insert(postgres, table, batch_size=3, batch_interval_ms=100), tmp_path, lambda i: (i,))
    job.write(4)
    assert numbers(postgres, table) == [0, 1, 2]
    job.processing_time(99)
    assert numbers(postgres, table) == [0, 1, 2]
    job.processing_time(100)
    assert numbers(postgres, table) == [0, 1, 2, 3]
    job.write().checkpoint("snapshot")
    assert numbers(postgres, table) == [0, 1, 2, 3, 4]
    job.close()


def test_upsert_makes_repeated_rows_harmless(postgres, table, tmp_path):
    sink = JdbcSink.sink(f"insert into {table} values (?) on conflict do nothing", NUMBER, options(postgres))
    job = ServerSinkJob(sink, tmp_path, lambda i: (i,)).write(5).checkpoint("snapshot")
    job.crash().write(7).end()
    assert numbers(postgres, table) == list(range(7))


def test_lost_connection_is_made_again(postgres, table, tmp_path):
    job = ServerSinkJob(insert(postgres, table), tmp_path, lambda i: (i,)).write(2).checkpoint()
    [operator] = job.operators
    pauses = []
    operator.writer._pause = pauses.append
    with postgres.connect() as connection:
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    job.write(2).checkpoint().close()
    assert (numbers(postgres, table), pauses) == ([0, 1, 2, 3], [1.0])


def test_attempts_come_to_an_end(tmp_path):
    nowhere = JdbcConnectionOptions("jdbc:postgresql://127.0.0.1:1/x")
    sink = JdbcSink.sink("insert into t values (?)", NUMBER, nowhere, JdbcExecutionOptions(max_retries=2))
    job = ServerSinkJob(sink, tmp_path, lambda i: (i,)).write()
    pauses = []
    job.operators[0].writer._pause = pauses.append
    with pytest.raises(ConnectorError, match=r"1 rows were not written in 3 attempts.*jdbc:postgresql://127.0.0.1:1/x"):
        job.checkpoint()
    assert pauses == [1.0, 2.0]


def test_row_that_the_table_refuses_fails_the_job(postgres, table, tmp_path):
    job = ServerSinkJob(insert(postgres, table), tmp_path, lambda i: (7,)).write(2)
    with pytest.raises(ConnectorError, match=r"2 rows were not written: UniqueViolation: duplicate key"):
        job.checkpoint()


def test_rows_that_are_refused_can_be_skipped(postgres, table, tmp_path):
    elements = [(1,), "no row", (2,), (2,), (10**12,), (3,)]
    sink = JdbcSink.sink(f"insert into {table} values (?)", NUMBER, options(postgres), None, on_refused=OnRefused.SKIP)
    job = ServerSinkJob(sink, tmp_path, lambda i: elements[i]).write(len(elements)).checkpoint()
    assert numbers(postgres, table) == [1, 2, 3]
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for name, metric in metrics.items() if name.endswith(REFUSED_METRIC)] == [3]
    job.close()


def test_refused_rows_are_counted_once_though_the_connection_is_lost(postgres, table, tmp_path):
    with postgres.connect() as connection:
        connection.execute(f"create table {table}_c (n int check (n % 2 = 0))")
    statement = f"insert into {table}_c values (?)"
    sink = JdbcSink.sink(statement, NUMBER, options(postgres), None, on_refused=OnRefused.SKIP)
    job = ServerSinkJob(sink, tmp_path, lambda i: (i,)).write(6)
    writer = job.operators[0].writer
    run, pauses = writer._run, []

    def lose_connection(rows):
        if rows == [[4]] and not pauses:
            with postgres.connect() as connection:
                connection.execute("select pg_terminate_backend(%s)", [writer._connection.info.backend_pid])
        run(rows)

    writer._run, writer._pause = lose_connection, pauses.append
    job.checkpoint()
    assert pauses == [1.0]
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for name, metric in metrics.items() if name.endswith(REFUSED_METRIC)] == [3]
    assert numbers(postgres, f"{table}_c") == [0, 2, 4]
    job.close()


def test_nanoseconds_are_refused(postgres, tmp_path):
    sink = JdbcSink.sink("select ?::timestamptz", Types.ROW([Types.INSTANT()]), options(postgres))
    with pytest.raises(ValueError, match=r"Instant<1, 5> has nanoseconds, but databases keep microseconds"):
        ServerSinkJob(sink, tmp_path, lambda i: (Instant(1, 5),)).write()


def test_missing_table_is_no_reason_to_skip(postgres, tmp_path):
    sink = JdbcSink.sink("insert into nowhere values (?)", NUMBER, options(postgres), on_refused=OnRefused.SKIP)
    with pytest.raises(ConnectorError, match='relation "nowhere" does not exist'):
        ServerSinkJob(sink, tmp_path, lambda i: (i,)).write().checkpoint()


# --- exactly once ----------------------------------------------------------------------------------------------------


def test_rows_show_up_when_their_checkpoint_is_complete(postgres, table, tmp_path):
    job = ServerSinkJob(exactly_once(postgres, table, "shows"), tmp_path, lambda i: (i,)).write(3)
    job.checkpoint("metadata")
    assert (numbers(postgres, table), len(prepared(postgres, "shows"))) == ([], 1)
    job.crash()
    assert (numbers(postgres, table), prepared(postgres, "shows")) == ([0, 1, 2], [])
    job.close()


@pytest.mark.parametrize("step", [None, "snapshot", "metadata", "commit"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_crash_at_any_point_writes_each_row_once(postgres, table, tmp_path, step, parallelism):
    job = ServerSinkJob(exactly_once(postgres, table, table), tmp_path, lambda i: (i,), parallelism=2)
    job.write(4).checkpoint().write(4)
    if step is not None:
        job.checkpoint(step)
    if step == "commit":
        job.write(2)
    job.crash(parallelism)
    assert prepared(postgres, table) == []
    while job.position < 12:
        job.write()
    job.end()
    assert (numbers(postgres, table), prepared(postgres, table)) == (list(range(12)), [])


def test_work_of_a_failed_checkpoint_is_committed_with_the_next(postgres, table, tmp_path):
    job = ServerSinkJob(exactly_once(postgres, table, table), tmp_path, lambda i: (i,))
    job.write(2).aborted_checkpoint().write(2)
    assert numbers(postgres, table) == []
    job.checkpoint().close()
    assert (numbers(postgres, table), prepared(postgres, table)) == ([0, 1, 2, 3], [])


def test_other_sinks_with_similar_prefixes_are_left_alone(postgres, table, tmp_path):
    other = ServerSinkJob(exactly_once(postgres, table, f"{table}-0"), tmp_path, lambda i: (i,)).write()
    other.checkpoint("metadata")
    ServerSinkJob(exactly_once(postgres, table, table), tmp_path, lambda i: (i + 10,)).write().end()
    assert len(prepared(postgres, table)) == 1
    other.crash().close()
    assert numbers(postgres, table) == [0, 10]


def test_transaction_that_was_rolled_back_fails_the_job(postgres, table, tmp_path):
    job = ServerSinkJob(exactly_once(postgres, table, table), tmp_path, lambda i: (i,)).write(3)
    job.checkpoint("metadata")
    [name] = prepared(postgres, table)
    with postgres.connect() as connection:
        connection.execute(f"rollback prepared '{name}'")
    with pytest.raises(JobExecutionError, match=f"transaction '{name}' was rolled back before it was committed"):
        job.crash()


def test_commit_is_tried_again_while_the_server_is_away(postgres, table, tmp_path):
    job = ServerSinkJob(exactly_once(postgres, table, table), tmp_path, lambda i: (i,)).write(3)
    job.checkpoint("metadata")
    postgres.kill()

    def bring_back(seconds):
        postgres.start()

    job.commits._pause = bring_back
    job.commit_again()
    assert (numbers(postgres, table), prepared(postgres, table)) == ([0, 1, 2], [])


def test_row_that_another_subtask_has_locked_is_explained(postgres, table, tmp_path):
    sink = exactly_once(postgres, table, table, lock_timeout_ms=10)
    job = ServerSinkJob(sink, tmp_path, lambda i: (1,), parallelism=2).write(2)
    with pytest.raises(
        ConnectorError, match=r"(?s)another transaction has locked.*put key_by\(...\) on the table's key"
    ):
        job.checkpoint()
    job.close()


def test_server_without_prepared_transactions_is_explained(postgres, tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        server = type(postgres)(Path(folder), max_prepared_transactions=0)
        server.start()
        try:
            with pytest.raises(ConnectorError, match=r"set max_prepared_transactions in postgresql\.conf"):
                ServerSinkJob(exactly_once(server, "t", "p"), tmp_path)
        finally:
            server.stop()
