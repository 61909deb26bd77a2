"""A function that cannot be sent to other processes is named with the variable that keeps it, and its line."""

from __future__ import annotations

import threading

import pytest

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.unpicklable import culprit

LOCK = threading.Lock()


class Locked(MapFunction):
    def __init__(self):
        self.guard = threading.Lock()

    def map(self, value):
        return value


def outer(lock):
    def inner(value):
        return lock, value

    return lambda value: [inner(each) for each in value]


def with_default(value, lock=LOCK):
    return lock


def using_a_global(value):
    return [LOCK for _ in range(value)]


using_a_global.__module__ = "__main__"  # As in a script: cloudpickle takes its globals along.
with_default.__module__ = "__main__"


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (outer(LOCK), "variable 'lock' (a lock)"),
        (using_a_global, "variable 'LOCK' (a lock)"),
        (with_default, "a default argument (a lock)"),
        (Locked(), "attribute 'guard' of Locked (a lock)"),
        (Locked().map, "attribute 'guard' of Locked (a lock)"),
        (LOCK, None),
        (len, None),
    ],
)
def test_culprit_is_named_as_the_user_calls_it(function, found):
    assert culprit(function) == found


def test_error_names_variable_and_line(tmp_path):
    lock = threading.Lock()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).map(lambda value: (lock, value)).name("locked").print()
    with pytest.raises(InvalidProgramError, match=r"operator 'locked': .* \(variable 'lock' \(a lock\): ") as caught:
        env.execute()
    assert str(caught.value).splitlines()[1].startswith(f"  made at {__file__}:")
    assert '.name("locked").print()' in str(caught.value)
