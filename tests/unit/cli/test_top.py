"""The table of `penstock top`: figures are whole on any terminal, and what matters least goes first."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from penstock.cli.watch_commands import _cells, _table

JOB: dict[str, Any] = {
    "jid": "ab" * 16,
    "name": "orders by customer and hour",
    "state": "RUNNING",
    "end-time": -1,
    "duration": 7_261_000,
    "records": 1_234_567,
    "records-per-second": 56_123.7,
    "share-done": 0.42,
    "watermark-lag": 1_500,
    "busy": {"share": 0.5},
    "backpressure": {"level": "high"},
    "checkpoint": {"completed": 10**15},
    "restarts": 2,
}
ENDED = {**JOB, "name": "Q", "state": "FINISHED", "end-time": 5, "share-done": 1.0, "checkpoint": None}


def shown(jobs: list[dict[str, Any]], width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(_table(jobs, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@given(width=st.integers(60, 200), jobs=st.lists(st.sampled_from([JOB, ENDED]), max_size=4))
def test_figures_are_never_cut(width, jobs):
    title, head, _, *rows, end = shown(jobs, width)
    assert title.startswith(f"{jobs.count(JOB)} running, {jobs.count(ENDED)} ended")
    assert "Ctrl-C ends" in end and ("penstock run" in end) == (not jobs)
    columns = head.split()[1:]
    assert {"ID", "STATE", "/S", "LAG"} <= set(columns)
    for job, row in zip(jobs, rows, strict=True):
        told = _cells(job, 0)
        assert row.split("…")[-1].split(job["name"])[-1].split() == " ".join(told[each] for each in columns).split()


def test_wide_terminal_shows_all_and_a_narrow_one_what_matters():
    assert shown([JOB], 140)[1].split()[-4:] == ["BUSY", "BACKPR.", "CHECKPOINT", "RESTARTS"]
    narrow = shown([JOB], 80)
    assert narrow[1].split() == ["JOB", "ID", "STATE", "/S", "LAG", "BACKPR.", "CHECKPOINT"]
    assert narrow[3].startswith("orders by") and "RUNNING 42%" in narrow[3] and "BUSY" not in narrow[1]


def test_share_of_an_ended_job_is_not_reported():
    assert _cells(ENDED, 0)["STATE"] == "FINISHED" and _cells(JOB, 0)["STATE"] == "RUNNING 42%"
