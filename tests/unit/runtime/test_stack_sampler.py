"""What a task was seen doing."""

from __future__ import annotations

import sys
import threading
import time

from penstock.runtime import stack_sampler
from penstock.runtime.stack_sampler import sampling, stack_of


def test_thread_outside_a_task_has_no_stack():
    assert stack_of(sys._getframe()) is None and stack_of(None) is None


def test_stack_begins_where_the_task_does():
    code = compile("def run_task(inner):\n    return inner()\n", "somewhere/runtime/task_host.py", "exec")
    names: dict = {}
    exec(code, names)

    def innermost():
        return stack_of(sys._getframe())

    (frame,) = names["run_task"](innermost)
    assert frame.startswith("innermost (test_stack_sampler.py:")


def test_only_what_the_thread_does_within_is_counted():
    code = compile("def run_task(inner):\n    return inner()\n", "somewhere/runtime/task_host.py", "exec")
    names: dict = {}
    exec(code, names)
    counts: dict = {}

    def spin() -> None:
        deadline = time.monotonic() + 30
        while not counts and time.monotonic() < deadline:
            sum(range(1000))

    with sampling(counts):
        names["run_task"](spin)
    assert any(frame.startswith("spin (") for stack in counts for frame in stack)
    assert threading.get_ident() not in stack_sampler._watched
