"""Which changes the rows of a stream can be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChangelogMode:
    """Which changes the rows of a stream can be.

    >>> ChangelogMode.upsert()
    ChangelogMode(changes='upsert')
    """

    changes: str = "insert"

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Rows are only added."""
        return ChangelogMode("insert")

    @staticmethod
    def upsert() -> ChangelogMode:
        """Rows are added, replaced by their key, and deleted; there is no row for what they were before."""
        return ChangelogMode("upsert")

    @staticmethod
    def all() -> ChangelogMode:
        """Every kind of change, with a row for what was before an update."""
        return ChangelogMode("all")
