"""The `penstock` command, with the verbs and flags of Flink's."""

from __future__ import annotations

from penstock.cli.commands import main

__all__ = ["main"]
