"""What is reported of a failure of Spark's own."""

from __future__ import annotations

import re

import pytest

from penstock.spark.resident_job import reason_of


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Job aborted.\nDriver stacktrace:", r"Job aborted\."),
        ("Traceback\n  File\nValueError: no number", "ValueError: no number"),
        (
            "Job aborted due to stage failure: ... java.lang.OutOfMemoryError: Java heap space\n\tat java.base",
            r"Java's memory was too small .* spark\.driver\.memory .* or spark\.executor\.memory",
        ),
    ],
)
def test_reason_is_one_line_that_helps(message, reason):
    assert re.match(reason, reason_of(RuntimeError(message)))
