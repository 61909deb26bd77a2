"""Tests of operators and whole jobs without Spark and without a clock, for Penstock's users too."""

from __future__ import annotations

from penstock.testing.faulty_folder import Fault, FaultPlan, FaultyFolder
from penstock.testing.harness import OperatorHarness
from penstock.testing.job_in_epochs import JobInEpochs
from penstock.testing.memory_folder import MemoryFolder

__all__ = ["Fault", "FaultPlan", "FaultyFolder", "JobInEpochs", "MemoryFolder", "OperatorHarness"]
