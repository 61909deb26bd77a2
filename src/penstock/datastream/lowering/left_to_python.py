"""Elements that were not lowered, among those that were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LeftToPython:
    """An element that the next operator must handle in Python, among elements that have passed the lowered ones."""

    element: Any
