"""State backends at run time: small factories that travel with the job and make the tables of each operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.runtime.state.table import StateTable

MakeTable = Callable[[str], StateTable]
"""By the table's name."""


class KeyedBackend(Protocol):
    """Says how a subtask holds keyed state."""

    def tables(self, run_id: str, subtask_name: str, operator_id: str) -> MakeTable:
        """What makes the tables of one operator of one subtask; empty ones, whatever was there before."""


@dataclass(frozen=True)
class HeapBackend:
    """State as Python objects in memory. Without `tracks_changes` snapshots are always whole."""

    tracks_changes: bool = True

    def tables(self, run_id: str, subtask_name: str, operator_id: str) -> MakeTable:
        return lambda name: StateTable(name, self.tracks_changes)
