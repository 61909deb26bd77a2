"""The settings of a table environment."""

from __future__ import annotations

import datetime
import time
from zoneinfo import ZoneInfo

from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, UnsupportedFeatureError
from penstock.table.sql_dialect import SqlDialect

_ZONE = "table.local-time-zone"
_RETENTION = "table.exec.state.ttl"
_CODE_LENGTH = "table.generated-code.max-length"
_PYTHON = "python.executable"


class TableConfig:
    """The settings of a table environment: `table.*` keys are the planner's, all others those of its jobs.

    >>> config = TableConfig()
    >>> config.set("table.exec.state.ttl", "1 h").get("table.exec.state.ttl", "0")
    '1 h'
    """

    def __init__(self, j_table_config: Configuration | None = None) -> None:
        self._settings = Configuration() if j_table_config is None else j_table_config

    def get(self, key: str, default_value: str) -> str:
        """The value of a key; `default_value` if it is not set."""
        return self.to_map().get(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Set a key for all statements that follow."""
        self._settings.set_string(key, str(value))
        return self

    def get_local_timezone(self) -> str:
        """The time zone of the session."""
        zone = self.get(_ZONE, "default")
        return time.tzname[0] if zone == "default" else zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """The time zone in which TIMESTAMP_LTZ values are read and shown, such as `Europe/Berlin`."""
        if not timezone_id.startswith("GMT"):
            try:
                ZoneInfo(timezone_id)
            except (KeyError, ValueError) as error:
                raise ConfigurationError(f"{_ZONE}: {timezone_id!r} is not a time zone such as 'UTC'") from error
        self.set(_ZONE, timezone_id)

    def get_max_generated_code_length(self) -> int:
        """A setting of Flink's, which has no meaning here."""
        return int(self.get(_CODE_LENGTH, "4000"))

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """A setting of Flink's, which has no meaning here."""
        self.set(_CODE_LENGTH, str(max_generated_code_length))

    def set_idle_state_retention(self, duration: datetime.timedelta) -> None:
        """How long state that nothing changes is kept; zero means for ever."""
        self.set(_RETENTION, f"{duration // datetime.timedelta(milliseconds=1)} ms")

    def get_idle_state_retention(self) -> datetime.timedelta:
        """How long state that nothing changes is kept; zero means for ever."""
        from penstock.common.config_values import parse_as

        millis = parse_as("duration", self.get(_RETENTION, "0 ms"))
        return datetime.timedelta(milliseconds=int(millis))

    def get_configuration(self) -> Configuration:
        """The settings themselves: what is set there counts."""
        return self._settings

    def add_configuration(self, configuration: Configuration) -> None:
        """Set all keys of a configuration."""
        for key, value in configuration.to_dict().items():
            self.set(key, value)

    def to_map(self) -> dict[str, str]:
        """All settings."""
        return self._settings.to_dict()

    def get_sql_dialect(self) -> int:
        """Always `SqlDialect.DEFAULT`."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: int) -> None:
        """Only Flink's own dialect is supported."""
        if sql_dialect != SqlDialect.DEFAULT:
            raise UnsupportedFeatureError("TableConfig.set_sql_dialect: Hive's dialect of SQL is not supported")

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs the job's functions."""
        self.set(_PYTHON, python_exec)

    def get_python_executable(self) -> str | None:
        """The Python that runs the job's functions; None if it is the one that runs the program."""
        return self.to_map().get(_PYTHON)

    @staticmethod
    def get_default() -> TableConfig:
        """Settings with which nothing is set."""
        return TableConfig()

    def reset(self, key: str | None = None) -> None:
        """Take back the setting of a key, or of all `table.*` keys. For statements."""
        for each in list(self.of_planner()) if key is None else [key]:
            self._settings.remove_config(each)

    def of_planner(self) -> dict[str, str]:
        """The settings that the planner knows."""
        return {key: value for key, value in self.to_map().items() if key.startswith("table.")}
