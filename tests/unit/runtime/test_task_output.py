"""What functions write in a worker arrives whole, in order, once, and with where it was written."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.task_output import (
    LoggedRecord,
    PrintedLine,
    TaskPlace,
    captured,
    enter_task,
    levels_here,
    read_written,
    use_levels,
)

PLACE = TaskPlace("Map", 1, 2, 0)


@pytest.fixture
def sent():
    """All that was sent, in order."""
    parts: list[bytes] = []
    return parts, lambda: [each for part in parts for each in read_written(part)]


def test_prints_records_and_stacks_arrive_in_order_with_their_place(sent):
    parts, arrived = sent
    with captured(parts.append):
        use_levels((("", logging.INFO), ("fish.deep", logging.DEBUG)))
        enter_task(PLACE)
        print("one", 2)
        logging.getLogger("fish").debug("too little to tell")
        logging.getLogger("fish.deep").debug("%s and %s", "salt", object)
        try:
            raise ValueError("a bone")
        except ValueError:
            logging.getLogger("fish").exception("choked")
        print("no end", end="", file=sys.stderr)
        enter_task(None)
    printed, record, failure, rest = arrived()
    assert printed == PrintedLine(False, "one 2") and rest == PrintedLine(True, "no end")
    assert isinstance(record, LoggedRecord) and record.place == PLACE and str(PLACE) == "Map (2/2)#0"
    assert record.fields["msg"] == "salt and <class 'object'>" and record.fields["levelno"] == logging.DEBUG
    assert isinstance(failure, LoggedRecord) and "ValueError: a bone" in failure.fields["exc_text"]


def test_all_is_as_before_afterwards(sent):
    parts, _ = sent
    handlers, levels, streams = logging.root.handlers[:], levels_here(), (sys.stdout, sys.stderr)
    with captured(parts.append):
        use_levels((("", 5), ("new", 7)))
    assert (logging.root.handlers, levels_here(), (sys.stdout, sys.stderr)) == (handlers, levels, streams)


@given(st.lists(st.text("ab\n", max_size=6), max_size=20))
def test_lines_are_cut_as_a_terminal_shows_them(texts):
    parts: list[bytes] = []
    with captured(parts.append):
        for text in texts:
            sys.stdout.write(text)
    lines = [each.text for part in parts for each in read_written(part) if isinstance(each, PrintedLine)]
    assert lines == io.StringIO("".join(texts)).read().splitlines()


def test_threads_do_not_cut_each_others_lines(sent):
    parts, arrived = sent

    def chatter(name: str) -> None:
        for at in range(200):
            print(name, at)

    with captured(parts.append):
        threads = [threading.Thread(target=chatter, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = [each.text for each in arrived()]
    for name in "abc":
        assert [line for line in lines if line.startswith(name)] == [f"{name} {at}" for at in range(200)]
    assert len(lines) == 600


def test_warnings_do_not_wait(sent):
    parts, arrived = sent
    with captured(parts.append):
        logging.getLogger("fish").warning("now")
        assert [each.fields["msg"] for each in arrived()] == ["now"]


def test_the_thread_that_sends_ends_with_what_it_captures():
    for _ in range(20):
        with captured(lambda content: None):
            print("something")
    deadline = time.monotonic() + 30
    while any(thread.name == "penstock-output" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "a thread waits for output that never comes"
        time.sleep(0.01)
