"""Read the state of savepoints and retained checkpoints as Spark DataFrames, and write savepoints from DataFrames.

Flink calls it the State Processor API. It needs Spark, but no job.
"""

from __future__ import annotations

from penstock.state_processor.operators import OperatorIdentifier, OperatorState, StateInfo
from penstock.state_processor.reader import SavepointReader, read
from penstock.state_processor.writer import SavepointWriter, from_existing, new_savepoint

__all__ = [
    "OperatorIdentifier",
    "OperatorState",
    "SavepointReader",
    "SavepointWriter",
    "StateInfo",
    "from_existing",
    "new_savepoint",
    "read",
]
