"""The log of a job: bounded, with where each line comes from, over REST and `penstock logs`, and in a rotated file."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.commands import main
from penstock.cli.run_screen import say_what_was_restored
from penstock.common import Configuration
from penstock.jobmaster.failure_history import FailureReports
from penstock.jobmaster.job_log import JobLog
from penstock.jobmaster.sinks.job_output import JobOutput
from penstock.runtime.task_output import LoggedRecord, PrintedLine, TaskPlace

PLACE = TaskPlace("Map", 0, 1, 0)


class Shown(JobOutput):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[bool, str]] = []
        self.write_lines = self.lines.extend


def a_log(**settings: str) -> tuple[JobLog, Shown]:
    output = Shown()
    return JobLog("ab" * 16, "fish", Configuration.from_dict(settings), output), output


def sent(*written: Any) -> bytes:
    return pickle.dumps(list(written))


def record(message: str, level: int = logging.WARNING) -> LoggedRecord:
    made = logging.LogRecord("fish.deep", level, "f.py", 1, message, None, None)
    return LoggedRecord(made.__dict__, PLACE)


def test_what_workers_write_is_shown_and_logged_as_if_it_were_here(caplog):
    log, output = a_log()
    with caplog.at_level(logging.INFO):
        log.take(sent(PrintedLine(False, "hello"), record("salt", logging.INFO), PrintedLine(True, "oh")), lambda: True)
        log.close()
    assert output.lines == [(False, "hello"), (True, "oh")]
    [told] = caplog.records
    assert (told.getMessage(), told.threadName, told.name) == ("salt", "Map (1/1)#0", "fish.deep")
    assert (told.job_name, told.task_name, told.subtask) == ("fish", "Map", 0)
    assert "INFO  [Map (1/1)#0] fish.deep - salt" in log.lines()[0][1]


def test_warning_has_time_level_and_place_where_no_logging_is_set_up(monkeypatch):
    log, output = a_log()
    monkeypatch.setattr(logging.root, "handlers", [])
    log.take(sent(record("shark"), record("quiet", logging.INFO)), lambda: True)
    log.close()
    [(is_error, line)] = output.lines
    assert is_error and "WARNING [Map (1/1)#0] fish.deep - shark" in line and line[:2] == "20"


def test_log_is_bounded_and_numbers_continue():
    log, _ = a_log()
    for _ in range(7_000):
        log.write(logging.LogRecord("f", logging.INFO, "f.py", 1, "x" * 1_000, None, None))
    lines = log.lines()
    assert lines[-1][0] == 6_999 and sum(len(text) for _, text in lines) <= 1_000_000
    assert [number for number, _ in log.lines(6_997)] == [6_998, 6_999]


def test_secrets_are_hidden():
    log, _ = a_log()
    log.write(logging.LogRecord("f", logging.INFO, "f.py", 1, "password=hunter2", None, None))
    assert "hunter2" not in log.lines()[0][1]


def test_file_is_written_and_a_folder_that_cannot_be_does_no_harm(tmp_path, caplog):
    log, _ = a_log(**{"env.log.dir": str(tmp_path / "logs")})
    log.write(logging.LogRecord("f", logging.INFO, "f.py", 1, "kept", None, None))
    log.close()
    assert "kept" in (tmp_path / "logs" / f"penstock-{'ab' * 16}.log").read_text()
    (tmp_path / "file").touch()
    a_log(**{"env.log.dir": str(tmp_path / "file" / "below")})
    assert "writes no log file" in caplog.text


def test_full_disk_is_reported_once_and_the_job_continues_without_its_file(tmp_path, caplog, capsys):
    (tmp_path / f"penstock-{'ab' * 16}.log").symlink_to("/dev/full")
    log, _ = a_log(**{"env.log.dir": str(tmp_path)})
    for number in range(5):
        log.write(logging.LogRecord("f", logging.INFO, "f.py", 1, f"record {number}", None, None))
    log.close()
    [told] = [each.getMessage() for each in caplog.records]
    assert told.startswith(f"job 'fish' writes no more to its log file {tmp_path}") and "No space left" in told
    assert capsys.readouterr().err == ""
    assert [line.rpartition(" - ")[2] for _, line in log.lines()] == [f"record {number}" for number in range(5)]


def test_record_that_cannot_be_formatted_is_kept_as_it_is(tmp_path, capsys):
    log, _ = a_log(**{"env.log.dir": str(tmp_path)})
    log.write(logging.LogRecord("f", logging.INFO, "f.py", 1, "%d fish", ("many",), None))
    log.close()
    [(_, line)] = log.lines()
    assert "'%d fish' with ('many',) cannot be formatted" in line
    assert line in (tmp_path / f"penstock-{'ab' * 16}.log").read_text()
    assert capsys.readouterr().err == ""


def test_functions_of_a_job_log_into_its_log(start_job, eventually):
    def noisy(word: str) -> str:
        logging.getLogger("fish").warning("saw %s", word)
        return word

    job = start_job(define=lambda text: text.map(noisy))
    job.send("river\n")
    lines = eventually(lambda: [line for line in job.get("/log")["lines"] if "fish" in line["text"]])
    assert lines[0]["text"].endswith("fish - saw river") and "Map" in lines[0]["text"]
    assert job.get("/log", after=str(lines[-1]["number"])) == {"lines": []}
    shown = CliRunner().invoke(main, ["logs", job.id])
    assert shown.exit_code == 0 and "saw river" in shown.stdout
    job.end()
    assert "saw river" in "".join(line["text"] for line in job.get("/log")["lines"])


def test_log_of_a_failed_job_has_its_start_its_failure_and_its_end(start_job):
    job = start_job(define=lambda text: text.map(lambda word: 1 / len(word.strip("x"))))
    job.send("xx\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        job.client.get_job_execution_result().result()
    shown = CliRunner().invoke(main, ["logs", job.id]).stdout
    places = [shown.index(text) for text in ("from state CREATED to RUNNING", "at record 'xx'", "to FAILED.")]
    assert places == sorted(places)
    assert "1 / len(word" in shown


def test_log_and_stderr_say_from_which_checkpoint_a_job_continues(start_job, tmp_path, capsys):
    stopped = start_job()
    path = stopped.client.stop_with_savepoint(False, str(tmp_path)).result()
    stopped.client.get_job_execution_result().result()
    job = start_job({"execution.state-recovery.path": str(tmp_path / path.rpartition("/")[2])})
    texts = [line["text"] for line in job.get("/log")["lines"]]
    said = f"Restored from {path.removeprefix('file://')}"
    assert any(text.endswith(said) for text in texts)
    capsys.readouterr()
    say_what_was_restored(job.client)
    assert capsys.readouterr().err == f"{said}\n"
    say_what_was_restored(stopped.client)
    assert capsys.readouterr().err == ""


def test_log_says_from_which_checkpoint_a_job_is_restarted(start_job, tmp_path, eventually):
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "2",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path),
    }
    job = start_job(settings, lambda text: text.map(lambda word: 1 / len(word.strip("x"))))
    job.send("river\n")
    eventually(lambda: job.get("/checkpoints")["counts"]["completed"] > 0)
    job.send("xx\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        job.client.get_job_execution_result().result()
    texts = "".join(line["text"] for line in job.get("/log")["lines"])
    assert f"Restored from {tmp_path}" in texts or f"Restored from file://{tmp_path}" in texts


def test_first_failure_shows_the_users_frames_and_its_repetition_one_line(start_job, eventually):
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "2",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    job = start_job(settings, lambda text: text.map(lambda word: 1 / len(word.strip("x"))))
    job.send("xx\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        job.client.get_job_execution_result().result()
    warnings = [line["text"] for line in job.get("/log")["lines"] if "restarting in" in line["text"]]
    assert "1 / len(word" in warnings[0] and "restart-strategy.type decides" in warnings[0]
    assert "the same failure, 2 times so far" in warnings[1] and "\n" not in warnings[1]


def test_different_failures_are_reported_each():
    told = FailureReports()
    assert "\n" in told.of("fish", ValueError("one"), 1, 10)
    assert "\n" in told.of("fish", ValueError("two"), 2, 10)
    assert "2 times so far" in told.of("fish", ValueError("one"), 3, 10)
