"""Writing rows to databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.redaction import redacted_repr, redacted_text
from penstock.common.typeinfo import RowTypeInfo
from penstock.datastream.connectors.base import DescribedSinkFunction, Sink
from penstock.datastream.connectors.jdbc.databases import checked_columns, database_of
from penstock.datastream.connectors.jdbc.statements import Statement
from penstock.datastream.connectors.sink_v2 import (
    Committer,
    CommitterInitContext,
    SinkWriter,
    SupportsCommitter,
    WriterInitContext,
)
from penstock.datastream.connectors.support.refused_records import OnRefused

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExactlyOnceSink",
    "JdbcExecutionOptions",
    "JdbcSink",
]

LONGEST_PREFIX = 128
"""PostgreSQL's names of transactions have 199 bytes at most; a subtask's number and a unique part follow."""


class JdbcConnectionOptionsBuilder:
    """Collects how to reach a database.

    `JdbcSink` has an example.
    """

    def __init__(self) -> None:
        self._url: str | None = None
        self._driver_name: str | None = None
        self._user_name: str | None = None
        self._password: str | None = None

    def with_url(self, url: str) -> JdbcConnectionOptionsBuilder:
        """The database, such as `jdbc:postgresql://host/shop` or `jdbc:sqlite:/data/shop.db`."""
        self._url = url
        return self

    def with_driver_name(self, driver_name: str) -> JdbcConnectionOptionsBuilder:
        """Accepted as in Flink, without effect: the URL says which Python client is used."""
        self._driver_name = driver_name
        return self

    def with_user_name(self, user_name: str) -> JdbcConnectionOptionsBuilder:
        """The user to log in as, instead of one that the URL names."""
        self._user_name = user_name
        return self

    def with_password(self, password: str) -> JdbcConnectionOptionsBuilder:
        """The password of the user."""
        self._password = password
        return self

    def build(self) -> JdbcConnectionOptions:
        """The options; ValueError if there is no URL."""
        return JdbcConnectionOptions(self._url or "", self._driver_name, self._user_name, self._password)


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """How to reach a database.

    `JdbcSink` has an example.
    """

    JdbcConnectionOptionsBuilder = JdbcConnectionOptionsBuilder

    db_url: str
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        if not self.db_url:
            raise ValueError("JdbcConnectionOptions: the database's URL is missing; call with_url('jdbc:...')")

    def get_db_url(self) -> str:
        """The database's URL."""
        return self.db_url

    def get_driver_name(self) -> str | None:
        """The driver that was given; None if none was."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """The user that was given; None if none was."""
        return self.user_name

    def get_password(self) -> str | None:
        """The password that was given; None if none was."""
        return self.password


class JdbcExecutionOptionsBuilder:
    """Collects how rows are grouped into statements.

    `JdbcExecutionOptions` has an example.
    """

    def __init__(self) -> None:
        self._options = {"batch_interval_ms": 0, "batch_size": 5000, "max_retries": 3}

    def with_batch_size(self, size: int) -> JdbcExecutionOptionsBuilder:
        """How many rows are written at once; 5000, unless set."""
        self._options["batch_size"] = size
        return self

    def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptionsBuilder:
        """How long a row may wait for others; 0, unless set: until there are enough, or a checkpoint is taken."""
        self._options["batch_interval_ms"] = interval_ms
        return self

    def with_max_retries(self, max_retries: int) -> JdbcExecutionOptionsBuilder:
        """How often a failed batch is tried again; 3 times, unless set."""
        self._options["max_retries"] = max_retries
        return self

    def build(self) -> JdbcExecutionOptions:
        """The finished options."""
        return JdbcExecutionOptions(**self._options)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How rows are grouped into statements, and how often a failed one is tried again.

    >>> JdbcExecutionOptions.builder().with_batch_size(200).with_batch_interval_ms(1000).build().get_batch_size()
    200
    """

    Builder = JdbcExecutionOptionsBuilder

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise ValueError(f"JdbcExecutionOptions: max_retries must not be negative, got {self.max_retries}")

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """No time limit for a batch, 5000 rows in each, 3 retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptionsBuilder:
        """Begin to describe options."""
        return JdbcExecutionOptionsBuilder()

    def get_batch_interval_ms(self) -> int:
        """How long a row may wait for others, in milliseconds."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """How many rows are written at once."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """How often a failed batch is tried again."""
        return self.max_retries


class JdbcExactlyOnceOptionsBuilder:
    """Collects how transactions are named and committed.

    `JdbcExactlyOnceOptions` has an example.
    """

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}

    def with_transaction_prefix(self, prefix: str) -> JdbcExactlyOnceOptionsBuilder:
        """Name this sink's transactions; no two sinks that write to a database may share a prefix."""
        self._options["transaction_prefix"] = prefix
        return self

    def with_max_commit_attempts(self, max_commit_attempts: int) -> JdbcExactlyOnceOptionsBuilder:
        """How often a commit is tried before the job fails; 3 times, unless set."""
        self._options["max_commit_attempts"] = max_commit_attempts
        return self

    def with_lock_timeout_ms(self, lock_timeout_ms: int) -> JdbcExactlyOnceOptionsBuilder:
        """How long a row may be locked by another transaction before the job fails; 0: forever."""
        self._options["lock_timeout_ms"] = lock_timeout_ms
        return self

    def build(self) -> JdbcExactlyOnceOptions:
        """The options; ValueError if there is no transaction prefix."""
        return JdbcExactlyOnceOptions(**{"transaction_prefix": "", **self._options})


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """How transactions are named, and how patiently they are committed.

    >>> options = JdbcExactlyOnceOptions.builder().with_transaction_prefix("orders").with_max_commit_attempts(5).build()
    """

    transaction_prefix: str
    max_commit_attempts: int = 3
    lock_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if not self.transaction_prefix or len(self.transaction_prefix.encode()) > LONGEST_PREFIX:
            raise ValueError(
                f"JdbcExactlyOnceOptions: transactions need a name of 1 to {LONGEST_PREFIX} bytes, got "
                f"{self.transaction_prefix!r}; call with_transaction_prefix('name-of-this-sink')"
            )
        if self.max_commit_attempts <= 0:
            raise ValueError(
                f"JdbcExactlyOnceOptions: max_commit_attempts must be positive, got {self.max_commit_attempts}"
            )
        if self.lock_timeout_ms < 0:
            raise ValueError(
                f"JdbcExactlyOnceOptions: lock_timeout_ms must not be negative, got {self.lock_timeout_ms}"
            )

    @staticmethod
    def builder() -> JdbcExactlyOnceOptionsBuilder:
        """Begin to describe options."""
        return JdbcExactlyOnceOptionsBuilder()


@dataclass(frozen=True)
class JdbcSink(DescribedSinkFunction, Sink):
    """Runs a statement such as `insert into t (a, b) values (?, ?)` for each row.

    For PostgreSQL (`penstock[postgres]`), MySQL and MariaDB (`penstock[mysql]`), SQLite, and every database that has a
    client in the shape of Python's DB-API (`dbapi:module?name=value`).

    Rows may be written twice after a failure: make the statement an upsert where that matters, or use
    `exactly_once_sink`.

    >>> from penstock.common import Types
    >>> shop = JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:/data/shop.db").build()
    >>> orders = Types.ROW_NAMED(["id", "total"], [Types.INT(), Types.DOUBLE()])
    >>> sink = JdbcSink.sink("insert into orders (id, total) values (?, ?)", orders, shop)
    """

    sql: str
    type_info: RowTypeInfo
    connection_options: JdbcConnectionOptions
    execution_options: JdbcExecutionOptions = field(default_factory=JdbcExecutionOptions.defaults)
    on_refused: OnRefused = OnRefused.FAIL
    """What becomes of rows that the database refuses, for instance for a value out of range."""

    def __post_init__(self) -> None:
        if not isinstance(self.type_info, RowTypeInfo):
            raise TypeError(
                f"JdbcSink.sink: type_info must be a row type such as Types.ROW([Types.STRING()]), "
                f"got {self.type_info!r}"
            )
        places = Statement.of(self.sql).places
        if places != self.arity:
            raise ValueError(
                f"JdbcSink.sink: the statement has {places} '?' but type_info has {self.arity} fields; "
                f"write one '?' for each field in {self.sql!r}"
            )
        database_of(self.connection_options.db_url).check(self.connection_options)

    @property
    def arity(self) -> int:
        """The number of a row's fields."""
        return len(self.type_info.get_field_types())

    @property
    def skips_refused(self) -> bool:
        """True if rows that the database refuses are left out."""
        return self.on_refused is OnRefused.SKIP

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        on_refused: OnRefused = OnRefused.FAIL,
    ) -> JdbcSink:
        """A sink that fills the statement's `?` with a row's fields in order."""
        options = jdbc_execution_options or JdbcExecutionOptions.defaults()
        return JdbcSink(sql, type_info, jdbc_connection_options, options, on_refused)

    @staticmethod
    def upsert_sink(
        table: str,
        type_info: RowTypeInfo,
        key_fields: Sequence[str],
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """A sink that replaces the row with the same key, in the SQL of its database.

        The columns of the table have the names of the fields of `type_info`; the key must be a primary key or unique.
        Rows that are written again after a failure change nothing.
        """
        columns = type_info.get_field_names()
        checked_columns(columns, key_fields)
        statement = database_of(jdbc_connection_options.db_url).upsert(table, columns, key_fields)
        return JdbcSink.sink(statement, type_info, jdbc_connection_options, jdbc_execution_options)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcExactlyOnceSink:
        """A sink whose rows show up when their checkpoint is complete, each of them once."""
        options = jdbc_execution_options or JdbcExecutionOptions(max_retries=0)
        return JdbcExactlyOnceSink(
            sql, type_info, jdbc_connection_options, options, exactly_once_options=jdbc_exactly_once_options
        )

    def to_sink(self) -> Sink:
        return self

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        from penstock.datastream.connectors.jdbc.writer import JdbcWriter

        return JdbcWriter(self, context)


@dataclass(frozen=True)
class JdbcExactlyOnceSink(JdbcSink, SupportsCommitter[Any]):
    """Runs the statement for each row in PostgreSQL's prepared transactions; made by `JdbcSink.exactly_once_sink`.

    The server must take prepared transactions (`max_prepared_transactions`). Rows that touch the same row of the table
    must be written by the same subtask, so put a `key_by` in front of an upsert.

    `JdbcExactlyOnceOptions` has an example.
    """

    exactly_once_options: JdbcExactlyOnceOptions = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        url = self.connection_options.db_url
        if not database_of(url).has_prepared_transactions:
            raise UnsupportedFeatureError(
                f"JdbcSink.exactly_once_sink({redacted_text(url)!r}): this needs transactions that outlive their "
                f"connection, which only PostgreSQL has here; use JdbcSink.upsert_sink, whose rows may come again "
                f"without harm"
            )
        if self.execution_options.max_retries != 0:
            raise ValueError(
                f"JdbcSink.exactly_once_sink: a failed statement ends its transaction and cannot be tried again; set "
                f"max_retries to 0, got {self.execution_options.max_retries}"
            )

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        from penstock.datastream.connectors.jdbc.writer import JdbcTransactionWriter

        return JdbcTransactionWriter(self, context)

    def create_committer(self, context: CommitterInitContext) -> Committer[Any]:
        from penstock.datastream.connectors.jdbc.committer import JdbcCommitter

        return JdbcCommitter(self.connection_options, self.exactly_once_options.max_commit_attempts)
