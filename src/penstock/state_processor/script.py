"""The classes of the program's script on their way to Spark's tasks: state may be made of them."""

from __future__ import annotations

import contextlib
import pickle
import sys
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Script:
    """Classes as bytes. Spark has a cloudpickle of its own; what that builds, state does not find."""

    pickled: bytes

    @staticmethod
    def of_program() -> Script:
        found = [each for each in vars(sys.modules["__main__"]).values() if isinstance(each, type)]
        return Script(
            cloudpickle.dumps([each for each in found if each.__module__ == "__main__" and _can_travel(each)])
        )

    def load(self) -> Any:
        """Make the classes known to state for as long as the result is held."""
        return pickle.loads(self.pickled)


def _can_travel(kind: type) -> bool:
    # One that cannot is hardly part of state; if it is, the error will name it.
    with contextlib.suppress(Exception):
        cloudpickle.dumps(kind)
        return True
    return False
