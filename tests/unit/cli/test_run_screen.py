"""The live line of `penstock run`: nothing that is written is lost or changed by it, and it is gone at the end."""

from __future__ import annotations

import io
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import on_a_terminal

from penstock.cli.progress_text import bar, closing_line, count, duration, in_one_line, size, status_lines
from penstock.cli.run_screen import AboveTheLine, LiveLine, say_what_was_restored
from penstock.rest.client import RestClientError

TOLD = {
    "jid": "ab" * 16,
    "name": "fish",
    "state": "RUNNING",
    "start-time": 0,
    "end-time": -1,
    "duration": 61_000,
    "records": 1_234,
    "records-per-second": 56.7,
    "share-done": None,
    "watermark": None,
    "watermark-lag": None,
    "busy": {"share": 0.5, "vertex": "Map"},
    "backpressure": {"level": "ok", "share": 0.0, "vertex": "Map"},
    "checkpoint": None,
    "failed-checkpoints": 0,
    "restarts": 0,
    "failure": None,
    "savepoint": None,
}


def shown_on_a_terminal(text: str) -> list[str]:
    """The lines of a terminal that knows carriage returns, line feeds and the clearing of a line."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", text):
        if part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif part == "\r":
            column = 0
        elif part == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = lines[-1][:column] + part + lines[-1][column + len(part) :]
            column += len(part)
    return lines


steps = st.lists(
    st.one_of(
        st.tuples(st.just("draw"), st.text("abc", max_size=30)),
        st.tuples(st.sampled_from(["out", "err"]), st.text("xyz\n", max_size=8)),
    ),
    max_size=20,
)


@given(steps, st.lists(st.floats(0, 1), min_size=40, max_size=40))
def test_all_that_is_written_stays_and_the_line_is_gone_at_the_end(steps, waits):
    terminal, now, pauses = io.StringIO(), [100.0], iter(waits)
    line = LiveLine(terminal, lambda: 20, lambda: now[0])
    streams = {"out": AboveTheLine(terminal, line), "err": AboveTheLine(terminal, line)}
    written = ""
    for kind, text in steps:
        now[0] += next(pauses)
        if kind == "draw":
            line.draw(text)
            if not written or written.endswith("\n"):
                live = text if len(text) <= 19 else text[:18] + "…"
                assert shown_on_a_terminal(terminal.getvalue())[-1] == live
        else:
            streams[kind].write(text)
            written += text
    line.clear()
    assert shown_on_a_terminal(terminal.getvalue()) == written.split("\n")


def test_line_comes_back_below_what_was_written():
    terminal = io.StringIO()
    line = LiveLine(terminal, lambda: 20, lambda: 100.0)  # All within one moment, as in a burst
    out = AboveTheLine(terminal, line)
    line.draw("live")
    for number in range(3):
        out.write(f"{number}\n")
    line.draw_again()
    assert shown_on_a_terminal(terminal.getvalue()) == ["0", "1", "2", "live"]
    out.write("half a")
    line.draw_again()
    assert shown_on_a_terminal(terminal.getvalue())[-1] == "half a", "nothing can be drawn there"
    line.clear()


MORE = {
    **TOLD,
    "share-done": 0.5,
    "watermark": 0,
    "watermark-lag": 1_500,
    "checkpoint": {"id": 3, "completed": 1_000, "duration": 5, "size": 2_048},
    "backpressure": {"level": "high", "share": 0.9, "vertex": "Map"},
    "restarts": 2,
}


@given(st.integers(10, 200))
def test_line_gives_way_to_a_narrow_terminal_by_parts(room):
    line = in_one_line(MORE, 3_000, room)
    assert line.startswith("RUNNING") and "57/s" in line and line.endswith("backpressure high  restarts 2")
    assert len(line) <= room or line == "RUNNING  57/s  backpressure high  restarts 2"
    longest = in_one_line(MORE, 3_000)
    assert (line == longest) == (len(longest) <= room)


def test_lag_and_checkpoint_are_reported_on_80_columns():
    line = in_one_line({**MORE, "backpressure": TOLD["backpressure"]}, 3_000, 79)
    assert line == "RUNNING  50%  1,234 records  57/s  lag 1.5 s  checkpoint 2.0 s ago  restarts 2"


def test_program_on_a_terminal_has_its_results_above_the_line_and_its_end_below_them(tmp_path):
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "penstock", "run", "--no-web", "-Dexecution.target=inline", str(program)]
    screens = list(on_a_terminal(command))
    live = [last for screen in screens if (last := _last_line(screen)).startswith("RUNNING")]
    assert live and all(len(line) < 80 and "/s" in line for line in live)
    shown = [line for line in screens[-1] if line]
    assert re.fullmatch(r"Job has been submitted with JobID [0-9a-f]{32}", shown[0])
    assert shown[1:-1] == [f"word {number}" for number in range(8)]
    assert re.fullmatch(r"Job 'words' finished: 8 records in [\d.]+ (s|ms)", shown[-1])


def _last_line(screen: list[str]) -> str:
    return next((line for line in reversed(screen) if line), "")


PROGRAM = """
import time
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection(list(range(8))).map(lambda number: (time.sleep(0.2), f"word {number}")[1]).print()
env.execute("words")
"""


def test_line_reports_what_is_known():
    assert in_one_line(TOLD, 0) == "RUNNING  1,234 records  57/s"
    more = MORE
    told = in_one_line(more, 3_000)
    for part in ("] 50%", "(lag 1.5 s)", "checkpoint 3 2.0 s ago", "backpressure high", "restarts 2"):
        assert part in told
    assert any("3, 2.0 s ago, took 5 ms, 2 KiB of state" in each for each in status_lines(more, 3_000))


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({"state": "FINISHED"}, "finished"),
        ({"state": "CANCELED"}, "was cancelled"),
        ({"state": "FAILED"}, "failed"),
        ({"state": "FINISHED", "savepoint": "/s/1"}, "stopped with savepoint /s/1"),
    ],
)
def test_closing_line_says_how_it_ended(changes, how):
    assert closing_line({**TOLD, **changes}) == f"Job 'fish' {how}: 1,234 records in 1 min 1 s"


def test_numbers_are_short():
    assert [duration(ms) for ms in (5, 59_900, 60_000, 3_600_000, 90_061_000, -1_500)] == [
        "5 ms", "59.9 s", "1 min 0 s", "1 h 0 min", "1 d 1 h", "-1.5 s",
    ]  # fmt: skip
    assert [count(each) for each in (0.4, 999_999, 1_500_000, 2e9)] == ["0", "999,999", "1.50M", "2.00G"]
    assert [size(each) for each in (12, 2_048, 5 << 20)] == ["12 bytes", "2 KiB", "5 MiB"]
    assert bar(0.25) == "[█████░░░░░░░░░░░░░░░] 25%"


@pytest.mark.parametrize("status", [None, 404, 503])
def test_run_continues_if_the_job_manager_cannot_say_what_was_restored(status, capsys):
    class Client:
        def restored_from(self):
            raise RestClientError("not now", status)

    say_what_was_restored(Client())
    assert capsys.readouterr().err == ""


def test_event_time_that_is_ahead_of_the_clock_has_no_negative_lag():
    ahead = {**TOLD, "watermark": 61_000, "watermark-lag": -5_000}
    assert "(ahead 5.0 s)" in in_one_line(ahead, 56_000)
    assert any("5.0 s ahead of the clock" in line for line in status_lines(ahead, 56_000))


@pytest.mark.parametrize(
    ("awaited", "said"),
    {
        "workers": "RUNNING, waiting for workers",
        "state": "RUNNING, restoring state",
        "functions": "RUNNING, opening functions",
        None: "RUNNING",
    }.items(),
)
def test_a_job_that_cannot_process_anything_yet_says_what_it_waits_for(awaited, said):
    waiting = {**TOLD, "waiting-for": awaited}
    assert in_one_line(waiting, 0).startswith(f"{said}  ")
    assert any(line.startswith(f"State:        {said}, for ") for line in status_lines(waiting, 0))
