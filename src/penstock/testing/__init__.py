"""Tests of operators and whole jobs without Spark and without a clock, for Penstock's users too."""

from __future__ import annotations

from penstock.testing.harness import OperatorHarness

__all__ = ["OperatorHarness"]
