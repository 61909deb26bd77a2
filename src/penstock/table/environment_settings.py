"""With what a table environment starts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]


class _Builder:
    """Collects settings; `build` gives them."""

    def __init__(self) -> None:
        self._settings = EnvironmentSettings()

    def with_configuration(self, config: Configuration) -> _Builder:
        """Settings of jobs and of the planner, by key."""
        self._settings = replace(self._settings, configuration=Configuration(config))
        return self

    def in_batch_mode(self) -> _Builder:
        """All tables are bounded; results are final rows."""
        self._settings = replace(self._settings, is_streaming=False)
        return self

    def in_streaming_mode(self) -> _Builder:
        """Tables may be unbounded; results are changes. This is the default."""
        self._settings = replace(self._settings, is_streaming=True)
        return self

    def with_built_in_catalog_name(self, built_in_catalog_name: str) -> _Builder:
        """The name of the catalog that is there from the start."""
        self._settings = replace(self._settings, catalog=built_in_catalog_name)
        return self

    def with_built_in_database_name(self, built_in_database_name: str) -> _Builder:
        """The name of the database that is there from the start."""
        self._settings = replace(self._settings, database=built_in_database_name)
        return self

    def build(self) -> EnvironmentSettings:
        """The settings."""
        return self._settings


@dataclass(frozen=True)
class EnvironmentSettings:
    """With what a table environment starts: streaming or batch, names of its first catalog and database.

    >>> EnvironmentSettings.in_streaming_mode().is_streaming_mode()
    True
    """

    is_streaming: bool = True
    catalog: str = "default_catalog"
    database: str = "default_database"
    configuration: Configuration = field(default_factory=Configuration)

    Builder = _Builder

    @staticmethod
    def new_instance() -> _Builder:
        """A builder, for settings other than the usual ones."""
        return _Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Tables may be unbounded; results are changes."""
        return _Builder().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """All tables are bounded; results are final rows."""
        return _Builder().in_batch_mode().build()

    def get_built_in_catalog_name(self) -> str:
        """The name of the catalog that is there from the start."""
        return self.catalog

    def get_built_in_database_name(self) -> str:
        """The name of the database that is there from the start."""
        return self.database

    def is_streaming_mode(self) -> bool:
        """True if tables may be unbounded."""
        return self.is_streaming

    def get_configuration(self) -> Configuration:
        """The settings of jobs and of the planner, by key."""
        return self.configuration
