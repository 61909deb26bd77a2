"""What was not lowered, among what was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LeftToPython:
    """An element that the next operator must see in Python, among elements that are through with all lowered ones."""

    element: Any
