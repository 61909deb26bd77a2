"""The classes of the program's script. Other processes cannot import it, so its classes travel with the job."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

import cloudpickle  # type: ignore[import-untyped]


def classes_of_script() -> tuple[type, ...]:
    """All classes at the top level of the script, without those that cannot be sent to another process."""
    classes = [each for each in vars(sys.modules["__main__"]).values() if isinstance(each, type)]
    found = tuple(dict.fromkeys(each for each in classes if each.__module__ == "__main__"))
    # A class that cannot travel is unlikely to be part of state; if it is, the error will name it.
    return found if _can_travel(found) else tuple(each for each in found if _can_travel([each]))


def _can_travel(classes: Sequence[type]) -> bool:
    with contextlib.suppress(Exception):
        cloudpickle.dumps(classes)
        return True
    return False
