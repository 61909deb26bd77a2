"""Which database a URL names, and how to talk to it: PostgreSQL, SQLite, MySQL, or any module of Python's DB-API.

The DB-API leaves open how values are marked in a statement and how transactions are begun; a `Database` settles that.
Errors have the same names in all modules.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

from penstock.common.exceptions import EnvironmentSetupError, UnsupportedFeatureError
from penstock.common.optional_packages import optional_package
from penstock.common.redaction import is_secret, redacted_text
from penstock.datastream.connectors.jdbc.statements import Statement, connection_settings

if TYPE_CHECKING:
    from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions

_USER = "JdbcSink"


class Database(ABC):
    """One kind of database. Subclasses say how to connect and how values are marked in statements."""

    has_prepared_transactions = False
    """True if a transaction can outlive its connection, as exactly-once needs it."""

    @abstractmethod
    def library(self) -> Any:
        """The module of the client."""

    @abstractmethod
    def connect(self, options: JdbcConnectionOptions) -> Any:
        """A connection; raises an error of the module."""

    def check(self, options: JdbcConnectionOptions) -> None:
        """Raise if the URL cannot be understood."""

    def statement(self, sql: str) -> str:
        """A statement with `?` for each value, in the form that the client takes."""
        style = self.library().paramstyle
        if style not in ("qmark", "format", "pyformat", "numeric"):
            raise UnsupportedFeatureError(
                f"{_USER}: {self.library().__name__} marks values in the style {style!r}; qmark, format and numeric "
                f"can be used. Write a Sink of your own"
            )
        return Statement.of(sql).in_style(style)

    def run(self, connection: Any, statement: str, rows: list[Sequence[Any]]) -> None:
        """All rows in one transaction."""
        try:
            with closing(connection.cursor()) as cursor:
                cursor.executemany(statement, rows)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        """A statement that replaces the row with the same key, in the SQL of SQLite and PostgreSQL."""
        others = [f"{column} = excluded.{column}" for column in columns if column not in keys]
        action = f"do update set {', '.join(others)}" if others else "do nothing"
        return f"{_insert(table, columns)} on conflict ({', '.join(keys)}) {action}"


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' for _ in columns)})"


class PostgresDatabase(Database):
    has_prepared_transactions = True

    def library(self) -> Any:
        return optional_package("psycopg", "postgres", _USER)

    def check(self, options: JdbcConnectionOptions) -> None:
        connection_settings(options.db_url, options.user_name, options.password)

    def connect(self, options: JdbcConnectionOptions) -> Any:
        settings = connection_settings(options.db_url, options.user_name, options.password)
        return self.library().connect(autocommit=True, **settings)

    def statement(self, sql: str) -> str:
        return Statement.of(sql).text

    def run(self, connection: Any, statement: str, rows: list[Sequence[Any]]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(statement, rows)


_SQLITE_TEXT: dict[type, Callable[[Any], str]] = {
    Decimal: lambda value: format(value, "f"),
    date: date.isoformat,
    time: time.isoformat,
    datetime: lambda value: value.isoformat(" "),
    UUID: str,
}
"""Values for which SQLite has no type, and Python's client no form, or a deprecated one."""


class SqliteDatabase(Database):
    """A file: `jdbc:sqlite:/data/shop.db`. Subtasks on the same machine wait for each other."""

    def library(self) -> Any:
        return importlib.import_module("sqlite3")

    def connect(self, options: JdbcConnectionOptions) -> Any:
        return self.library().connect(self._path(options), timeout=60)

    def run(self, connection: Any, statement: str, rows: list[Sequence[Any]]) -> None:
        super().run(connection, statement, [[self._bound(value) for value in row] for row in rows])

    @staticmethod
    def _bound(value: Any) -> Any:
        """A value that the client takes. SQLite makes a number of text in a column for numbers."""
        to_text = _SQLITE_TEXT.get(type(value))
        return value if to_text is None else to_text(value)

    def check(self, options: JdbcConnectionOptions) -> None:
        if not self._path(options):
            url = redacted_text(options.db_url)
            raise ValueError(f"{_USER}: {url!r} names no file; write 'jdbc:sqlite:/data/shop.db'")

    def _path(self, options: JdbcConnectionOptions) -> str:
        return options.db_url.removeprefix("jdbc:sqlite:").partition("?")[0]


class MySqlDatabase(Database):
    """MySQL and MariaDB, by PyMySQL: `jdbc:mysql://host:3306/database`."""

    # Settings of Java's driver for which there is nothing to do here, or which are always on.
    _WITHOUT_EFFECT = frozenset(
        ("useUnicode", "characterEncoding", "serverTimezone", "rewriteBatchedStatements", "allowPublicKeyRetrieval",
         "autoReconnect", "useServerPrepStmts", "cachePrepStmts", "zeroDateTimeBehavior", "useLegacyDatetimeCode")
    )  # fmt: skip

    def library(self) -> Any:
        return optional_package("pymysql", "mysql", _USER)

    def check(self, options: JdbcConnectionOptions) -> None:
        self._settings(options)

    def connect(self, options: JdbcConnectionOptions) -> Any:
        return self.library().connect(**self._settings(options))

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        # MySQL knows the key itself. A statement that changes nothing stands for "do nothing".
        changed = [column for column in columns if column not in keys] or list(keys[:1])
        return f"{_insert(table, columns)} on duplicate key update " + ", ".join(f"{c} = values({c})" for c in changed)

    def _settings(self, options: JdbcConnectionOptions) -> dict[str, Any]:
        parts = urlsplit(options.db_url.removeprefix("jdbc:"))
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        user, password = given.pop("user", None), given.pop("password", "")
        settings: dict[str, Any] = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 3306,
            "database": unquote(parts.path.lstrip("/")) or None,
            "user": options.user_name or user,
            "password": options.password or password,
            "charset": "utf8mb4",
        }
        use_ssl, ssl_mode = given.pop("useSSL", "false"), given.pop("sslMode", "DISABLED")
        if use_ssl.lower() == "true" or ssl_mode != "DISABLED":
            settings["ssl"] = {"check_hostname": False}
        unknown = sorted(given.keys() - self._WITHOUT_EFFECT)
        if unknown:
            known = ", ".join(sorted({*self._WITHOUT_EFFECT, "user", "password", "useSSL", "sslMode"}))
            url = redacted_text(options.db_url)
            raise ValueError(f"{_USER}: the parameter {unknown[0]!r} of {url!r} is not one of {known}")
        return settings


_NAMES_OF_TEXTS = {"user", "username", "uid", "database", "dbname", "db", "schema", "catalog", "service_name", "sid"}


class DbApiDatabase(Database):
    """Any module of Python's DB-API: `dbapi:module?name=value` calls `module.connect(name=value)`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def library(self) -> Any:
        try:
            return importlib.import_module(self._module)
        except ModuleNotFoundError as missing:
            raise EnvironmentSetupError(
                f"{_USER}: there is no Python module {self._module!r} ({missing}); install the client of the database"
            ) from missing

    def connect(self, options: JdbcConnectionOptions) -> Any:
        given = parse_qsl(urlsplit(options.db_url).query, keep_blank_values=True)
        settings: dict[str, Any] = {name: self._value(name, text) for name, text in given}
        if options.user_name is not None:
            settings["user"] = options.user_name
        if options.password is not None:
            settings["password"] = options.password
        return self.library().connect(**settings)

    @staticmethod
    def _value(name: str, text: str) -> int | str:
        """A number where the text is one, such as a port. Names and passwords may look like numbers, and stay text."""
        is_text = is_secret(name) or name.lower() in _NAMES_OF_TEXTS
        return int(text) if text.isdecimal() and not is_text else text


def database_of(url: str) -> Database:
    """The database that a URL names."""
    if url.startswith("jdbc:postgresql:"):
        return PostgresDatabase()
    if url.startswith("jdbc:sqlite:"):
        return SqliteDatabase()
    if url.startswith(("jdbc:mysql:", "jdbc:mariadb:")):
        return MySqlDatabase()
    if url.startswith("dbapi:"):
        return DbApiDatabase(url.removeprefix("dbapi:").partition("?")[0])
    raise UnsupportedFeatureError(
        f"{_USER}: the URL {redacted_text(url)!r} names none of the databases that are known: jdbc:postgresql:, "
        f"jdbc:sqlite:, jdbc:mysql: and jdbc:mariadb:. Any other with a Python client: 'dbapi:module?name=value', "
        f"which calls module.connect(name=value)"
    )


def checked_columns(columns: Iterable[str], keys: Sequence[str]) -> None:
    missing = [key for key in keys if key not in set(columns)]
    if not keys or missing:
        raise ValueError(
            f"JdbcSink.upsert_sink: key_fields must be some of the row's fields, got {list(keys)!r}"
            + (f"; there is no {missing[0]!r}" if missing else "")
        )
