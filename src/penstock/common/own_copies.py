"""Copies of users' objects, so that every subtask has its own."""

from __future__ import annotations

import copy
import pickle
from typing import TypeVar

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.exceptions import InvalidProgramError

T = TypeVar("T")


def own_copy(given: T) -> T:
    """A copy for one subtask, as if the object had come from another machine; a restart begins with another one."""
    try:
        try:
            return copy.deepcopy(given)
        except TypeError:  # It holds a module or the like, which only cloudpickle can copy.
            copied: T = pickle.loads(cloudpickle.dumps(given))
            return copied
    except Exception as exc:
        raise InvalidProgramError(
            f"{type(given).__name__} cannot be copied for each subtask ({type(exc).__name__}: {exc}); make "
            f"connections, locks and files in open(), not in __init__()"
        ) from exc
