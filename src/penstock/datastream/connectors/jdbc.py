"""Writing rows to databases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.common.typeinfo import RowTypeInfo
from penstock.datastream.connectors.base import DescribedSinkFunction, Sink

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]


class JdbcConnectionOptionsBuilder:
    """Collects how to reach a database."""

    def __init__(self) -> None:
        self._url: str | None = None
        self._driver_name: str | None = None
        self._user_name: str | None = None
        self._password: str | None = None

    def with_url(self, url: str) -> JdbcConnectionOptionsBuilder:
        self._url = url
        return self

    def with_driver_name(self, driver_name: str) -> JdbcConnectionOptionsBuilder:
        self._driver_name = driver_name
        return self

    def with_user_name(self, user_name: str) -> JdbcConnectionOptionsBuilder:
        self._user_name = user_name
        return self

    def with_password(self, password: str) -> JdbcConnectionOptionsBuilder:
        self._password = password
        return self

    def build(self) -> JdbcConnectionOptions:
        return JdbcConnectionOptions(self._url or "", self._driver_name, self._user_name, self._password)


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """How to reach a database."""

    JdbcConnectionOptionsBuilder = JdbcConnectionOptionsBuilder

    db_url: str
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.db_url:
            raise ValueError("JdbcConnectionOptions: the database's URL is missing; call with_url('jdbc:...')")

    def get_db_url(self) -> str:
        return self.db_url

    def get_driver_name(self) -> str | None:
        return self.driver_name

    def get_user_name(self) -> str | None:
        return self.user_name

    def get_password(self) -> str | None:
        return self.password


class JdbcExecutionOptionsBuilder:
    """Collects how rows are grouped into statements."""

    def __init__(self) -> None:
        self._options = {"batch_interval_ms": 0, "batch_size": 5000, "max_retries": 3}

    def with_batch_size(self, size: int) -> JdbcExecutionOptionsBuilder:
        self._options["batch_size"] = size
        return self

    def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptionsBuilder:
        self._options["batch_interval_ms"] = interval_ms
        return self

    def with_max_retries(self, max_retries: int) -> JdbcExecutionOptionsBuilder:
        self._options["max_retries"] = max_retries
        return self

    def build(self) -> JdbcExecutionOptions:
        return JdbcExecutionOptions(**self._options)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """How rows are grouped into statements, and how often a failed one is tried again."""

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
        return JdbcExecutionOptionsBuilder()

    def get_batch_interval_ms(self) -> int:
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        return self.batch_size

    def get_max_retries(self) -> int:
        return self.max_retries


@dataclass(frozen=True)
class JdbcSink(DescribedSinkFunction, Sink):
    """Runs a statement such as `insert into t (a, b) values (?, ?)` for each row. Rows may be written twice after a
    failure: make the statement an upsert where that matters."""

    sql: str
    type_info: RowTypeInfo
    connection_options: JdbcConnectionOptions
    execution_options: JdbcExecutionOptions = field(default_factory=JdbcExecutionOptions.defaults)

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """A sink that fills the statement's `?` with a row's fields in order."""
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(
                f"JdbcSink.sink: type_info must be a row type such as Types.ROW([Types.STRING()]), got {type_info!r}"
            )
        places, fields = _count_places(sql), len(type_info.get_field_types())
        if places != fields:
            raise ValueError(
                f"JdbcSink.sink: the statement has {places} '?' but type_info has {fields} fields; "
                f"write one '?' for each field in {sql!r}"
            )
        return JdbcSink(
            sql, type_info, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions.defaults()
        )

    def to_sink(self) -> Sink:
        return self


def _count_places(sql: str) -> int:
    """How many `?` a statement has outside of quoted text."""
    return re.sub(r"'(?:[^']|'')*'", "", sql).count("?")
