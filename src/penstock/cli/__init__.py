"""The `penstock` command, with Flink's verbs and flags."""

from __future__ import annotations

from penstock.cli.commands import main

__all__ = ["main"]
