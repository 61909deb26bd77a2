"""When a task may start, given its inputs."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Start a task when ANY or when ALL of its inputs can be read."""

    ANY = 0
    ALL = 1
