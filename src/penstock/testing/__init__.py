"""Tests of operators and whole jobs without Spark and without a clock, for Penstock's users too."""

from __future__ import annotations

from penstock.testing.harness import OperatorHarness
from penstock.testing.job_in_epochs import JobInEpochs
from penstock.testing.memory_folder import MemoryFolder

__all__ = ["JobInEpochs", "MemoryFolder", "OperatorHarness"]
