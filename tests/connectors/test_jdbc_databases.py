"""JdbcSink against SQLite, MariaDB and a client in the shape of Python's DB-API."""

from __future__ import annotations

import datetime
import sqlite3
import sys
import uuid
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import EnvironmentSetupError, JobExecutionError, UnsupportedFeatureError
from penstock.common.time import Instant
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from penstock.datastream.connectors.jdbc.databases import database_of
from penstock.datastream.connectors.jdbc.statements import Statement
from penstock.datastream.connectors.support.refused_records import OnRefused

TOTALS = Types.ROW_NAMED(["country", "total"], [Types.STRING(), Types.INT()])
CREATE = "create table {} (country varchar(20) primary key, total int)"


def write(elements: list[Any], sink: JdbcSink, parallelism: int = 1, row_type: Any = TOTALS) -> None:
    config = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    env.from_collection(elements).map(lambda values: Row(*values), row_type).sink_to(sink)
    env.execute()


class Sqlite:
    def __init__(self, folder: Any) -> None:
        self.file = folder / "shop.db"
        self.options = JdbcConnectionOptions(f"jdbc:sqlite:{self.file}")
        self.run(CREATE.format("totals"))
        self.table = "totals"

    def run(self, sql: str) -> list[Any]:
        with sqlite3.connect(self.file) as connection:
            return connection.execute(sql).fetchall()


class MySql:
    def __init__(self, server: Any) -> None:
        self._server = server
        self.options = JdbcConnectionOptions(server.url, None, server.user, server.password)
        self.table = f"t_{uuid.uuid4().hex[:8]}"
        self.run(CREATE.format(self.table))

    def run(self, sql: str) -> list[Any]:
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


@pytest.fixture(params=["sqlite", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    if request.param == "sqlite":
        return Sqlite(tmp_path)
    return MySql(request.getfixturevalue("mysql"))


def rows_of(database: Any) -> list[Any]:
    return database.run(f"select country, total from {database.table} order by country")


@pytest.mark.parametrize("parallelism", [1, 2])
def test_rows_are_inserted(database, parallelism):
    sink = JdbcSink.sink(f"insert into {database.table} values (?, ?)", TOTALS, database.options)
    write([(f"c{number:03}", number) for number in range(100)], sink, parallelism)
    assert rows_of(database) == [(f"c{number:03}", number) for number in range(100)]


def test_an_upsert_keeps_the_last_row_of_a_key_and_may_come_again(database):
    sink = JdbcSink.upsert_sink(database.table, TOTALS, ["country"], database.options)
    for _ in range(2):
        write([("fr", 1), ("it", 2), ("fr", 3)], sink)
        assert rows_of(database) == [("fr", 3), ("it", 2)]


def test_an_upsert_of_keys_alone_leaves_rows_as_they_are(database):
    keys = Types.ROW_NAMED(["country"], [Types.STRING()])
    database.run(f"insert into {database.table} values ('fr', 7)")
    connection = database_of(database.options.db_url).connect(database.options)
    statement = database_of(database.options.db_url).upsert(database.table, keys.get_field_names(), ["country"])
    kind = database_of(database.options.db_url)
    kind.run(connection, kind.statement(statement), [["fr"]])
    connection.close()
    assert rows_of(database) == [("fr", 7)]


def test_sqlite_takes_decimals_and_times(tmp_path):
    database = Sqlite(tmp_path)
    database.run("create table payments (id text, total decimal(30, 2), day date, at time, moment timestamp)")
    types = [Types.PICKLED_BYTE_ARRAY(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.INSTANT()]
    row_type = Types.ROW_NAMED(["id", "total", "day", "at", "moment"], types)
    sink = JdbcSink.sink("insert into payments values (?, ?, ?, ?, ?)", row_type, database.options)
    identity, day, noon = uuid.UUID(int=7), datetime.date(2024, 5, 6), datetime.time(12, 0)
    write([(identity, Decimal("9.50"), day, noon, Instant(1, 5000)), (None,) * 5], sink, row_type=row_type)
    written = (str(identity), 9.5, "2024-05-06", "12:00:00", "1970-01-01 00:00:01.000005+00:00")
    assert database.run("select * from payments") == [written, (None,) * 5]
    assert database.run("select sum(total), max(typeof(total)) from payments") == [(9.5, "real")]


def test_a_row_that_is_refused_fails_the_job_or_is_left_out(database):
    statement = f"insert into {database.table} values (?, ?)"
    once = JdbcExecutionOptions(max_retries=0)
    with pytest.raises(JobExecutionError, match="2 rows were not written: IntegrityError"):
        write([("fr", 1), ("fr", 2)], JdbcSink.sink(statement, TOTALS, database.options, once))
    assert rows_of(database) == []
    write([("fr", 1), ("fr", 2), ("it", 3)], JdbcSink.sink(statement, TOTALS, database.options, once, OnRefused.SKIP))
    assert rows_of(database) == [("fr", 1), ("it", 3)]


def test_a_database_that_is_away_is_named():
    once = JdbcExecutionOptions(max_retries=0)
    options = JdbcConnectionOptions("jdbc:mysql://127.0.0.1:1/shop", None, "me", "secret")
    with pytest.raises(JobExecutionError, match=r"no connection to jdbc:mysql://127.0.0.1:1/shop"):
        write([("fr", 1)], JdbcSink.sink("insert into t values (?, ?)", TOTALS, options, once))


def test_any_client_in_the_shape_of_the_db_api(tmp_path, monkeypatch):
    """A module that marks values with numbers, as some clients do."""
    client = ModuleType("numbering_client")
    for name in ("Error", "OperationalError", "InterfaceError", "DataError", "IntegrityError"):
        setattr(client, name, getattr(sqlite3, name))
    client.paramstyle = "numeric"
    given = {}

    def connect(**settings: Any) -> Any:
        given.update(settings)
        return sqlite3.connect(settings["file"])

    client.connect = connect
    monkeypatch.setitem(sys.modules, "numbering_client", client)
    shop = Sqlite(tmp_path)
    url = f"dbapi:numbering_client?file={shop.file}&timeout=5&database=2024&access_token=0042"
    options = JdbcConnectionOptions(url, None, "me", "007")
    write([("fr", 1)], JdbcSink.sink("insert into totals values (?, ?) -- is it '?'", TOTALS, options))
    assert rows_of(shop) == [("fr", 1)]
    assert (given["timeout"], given["user"], given["password"]) == (5, "me", "007")
    assert (given["database"], given["access_token"]) == ("2024", "0042")


def test_the_users_name_and_password_come_before_those_of_a_mysql_url(monkeypatch):
    client = ModuleType("pymysql")
    client.connect = dict
    monkeypatch.setitem(sys.modules, "pymysql", client)
    url = "jdbc:mysql://host/shop?user=nobody&password=old&useSSL=true&sslMode=REQUIRED"
    options = JdbcConnectionOptions(url, None, "me", "secret")
    database_of(url).check(options)
    settings = database_of(url).connect(options)
    assert (settings["user"], settings["password"], "ssl" in settings) == ("me", "secret", True)
    settings = database_of(url).connect(JdbcConnectionOptions(url))
    assert (settings["user"], settings["password"]) == ("nobody", "old")


def test_a_client_that_is_not_installed_is_named():
    sink = JdbcSink.sink("insert into t values (?, ?)", TOTALS, JdbcConnectionOptions("dbapi:no_such_client"))
    with pytest.raises((JobExecutionError, EnvironmentSetupError), match="there is no Python module 'no_such_client'"):
        write([("fr", 1)], sink)


def test_exactly_once_is_refused_where_transactions_end_with_their_connection(tmp_path):
    names = JdbcExactlyOnceOptions.builder().with_transaction_prefix("p").build()
    with pytest.raises(UnsupportedFeatureError, match=r"only PostgreSQL has here; use JdbcSink.upsert_sink"):
        JdbcSink.exactly_once_sink("insert into t values (?, ?)", TOTALS, Sqlite(tmp_path).options, names)


def test_wrong_urls_and_keys_are_refused():
    with pytest.raises(ValueError, match=r"the parameter 'nonsense' of 'jdbc:mysql://db/shop.nonsense=1' is not"):
        JdbcSink.sink("insert into t values (?, ?)", TOTALS, JdbcConnectionOptions("jdbc:mysql://db/shop?nonsense=1"))
    with pytest.raises(ValueError, match="names no file"):
        JdbcSink.sink("insert into t values (?, ?)", TOTALS, JdbcConnectionOptions("jdbc:sqlite:"))
    with pytest.raises(ValueError, match=r"some of the row's fields, got \['id'\]; there is no 'id'"):
        JdbcSink.upsert_sink("t", TOTALS, ["id"], JdbcConnectionOptions("jdbc:sqlite:x"))


@given(st.lists(st.sampled_from(["?", "??", "'?'", "a", "%", "-- ?\n", '"?"', "/* ? */", " "])))
def test_styles_mark_the_same_places(parts):
    statement = Statement.of(" ".join(parts))
    assert statement.in_style("numeric").count(":") == statement.places
    assert statement.in_style("format") == statement.text
