"""A job is stopped in the middle, drained or not, at the first try or not: what it has taken is processed or saved."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest
from job_parts import (
    PATIENCE_S,
    RESTARTING,
    CopiesFail,
    Counting,
    Emitting,
    NumberServer,
    NumbersSource,
    environment,
    file_sink,
    job_of,
    numbers_in,
)
from shared_by_copies import SharedByCopies

from penstock.common.exceptions import CheckpointError
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors import FileSource, StreamFormat
from penstock.datastream.functions import MapFunction
from penstock.jobmaster.sources.element_spool import ElementSpool

LAST = 2000
EVERYTHING = list(range(1, LAST + 1))
NO_WATERMARKS = WatermarkStrategy.no_watermarks()


class Signal(SharedByCopies):
    """Lets a test know that a job has come to some record; shared by all copies of a function."""

    def __init__(self):
        self.came = threading.Event()


class Signalling(MapFunction):
    def __init__(self, signal, at):
        self.signal, self.at, self.seen = signal, at, 0

    def map(self, value):
        self.seen += 1
        if self.seen >= self.at:
            self.signal.came.set()
        return int(value)


def from_file(env, folder):
    path = folder / "numbers.txt"
    path.write_text("".join(f"{number}\n" for number in EVERYTHING))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    return env.from_source(source, NO_WATERMARKS, "files")


READ_AGAIN = {
    "collection": lambda env, folder: env.from_collection(EVERYTHING),
    "sequence": lambda env, folder: env.from_sequence(1, LAST),
    "splits": lambda env, folder: env.from_source(NumbersSource(1, LAST + 1), NO_WATERMARKS, "numbers"),
    "file": from_file,
    "function with state": lambda env, folder: env.add_source(Counting(1, LAST + 1)),
}
"""Sources that continue where the savepoint stood."""
READ_AT_ONCE = {"file"}
"""A block of a file is larger than all the lines of the test."""


@contextlib.contextmanager
def serving():
    with contextlib.closing(NumberServer(EVERYTHING)) as server:
        yield lambda env, folder: env.socket_text_stream("127.0.0.1", server.port)


@contextlib.contextmanager
def emitting():
    yield lambda env, folder: env.add_source(Emitting(1, LAST + 1))


GIVEN_ONCE = {"socket": serving, "function": emitting}
"""Sources that cannot give again what was taken."""


def started(build, folder, out, failing=0, restored=None, **more):
    signal = Signal()
    env = environment()
    build(env, folder).map(Signalling(signal, 25)).sink_to(file_sink(folder / out))
    settings = RESTARTING | {"penstock.epoch.interval": "5 ms"} | more
    if restored is not None:
        settings["execution.state-recovery.path"] = restored
    return job_of(env, settings, executor=CopiesFail(failing)).start(), signal


def stop(job, folder, failing, drain):
    for _ in range(failing):
        with pytest.raises(CheckpointError, match="disk full"):
            job.master.stop_with_savepoint(str(folder / "savepoints"), drain).result(PATIENCE_S)
    path = job.master.stop_with_savepoint(str(folder / "savepoints"), drain).result(PATIENCE_S)
    job.join()
    return path


CHECKPOINTS = {"every epoch": {}, "20 ms": {"execution.checkpointing.interval": "20 ms"}}


@pytest.mark.parametrize("checkpoints", sorted(CHECKPOINTS))
@pytest.mark.parametrize("failing", [0, 2], ids=["saved at once", "savepoint fails twice"])
@pytest.mark.parametrize("kind", sorted(READ_AGAIN))
def test_stopped_job_continues_where_it_stood(tmp_path, kind, failing, checkpoints):
    job, signal = started(READ_AGAIN[kind], tmp_path, "first", failing, **CHECKPOINTS[checkpoints])
    assert signal.came.wait(PATIENCE_S)
    path = stop(job, tmp_path, failing, drain=False)
    first = numbers_in(tmp_path / "first")
    job, _ = started(READ_AGAIN[kind], tmp_path, "second", restored=path, **{"penstock.epoch.max-records": "1000"})
    job.join()
    assert 0 < len(first) < LAST or kind in READ_AT_ONCE, "it was stopped in the middle"
    assert sorted([*first, *numbers_in(tmp_path / "second")]) == EVERYTHING


@pytest.mark.parametrize("failing", [0, 2], ids=["saved at once", "savepoint fails twice"])
@pytest.mark.parametrize("kind", sorted(READ_AGAIN))
def test_drained_job_has_processed_what_it_read(tmp_path, kind, failing):
    job, signal = started(READ_AGAIN[kind], tmp_path, "out", failing)
    assert signal.came.wait(PATIENCE_S)
    stop(job, tmp_path, failing, drain=True)
    written = numbers_in(tmp_path / "out")
    assert 25 <= len(written) < LAST or kind in READ_AT_ONCE
    assert written == EVERYTHING[: len(written)]


@pytest.mark.parametrize("drains", [(False, False), (True, True), (False, True), (True, False)])
def test_everybody_who_asks_a_job_to_stop_gets_an_answer(tmp_path, drains):
    job, signal = started(READ_AGAIN["sequence"], tmp_path, "out")
    assert signal.came.wait(PATIENCE_S)
    with job.master._runners[0]._changed:  # The region sees them together.
        answers = [job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain) for drain in drains]
    told = [answer.exception(PATIENCE_S) for answer in answers]
    job.join()
    assert None in told, "one of them has stopped it"
    assert all(each is None or "has ended before" in str(each) for each in told)


class Taken:
    """Everything that receivers have put into spools, in order."""

    def __init__(self, monkeypatch):
        self.values = []
        add, add_all = ElementSpool.add, ElementSpool.add_all

        def adding(spool, value, timestamp):
            add(spool, value, timestamp)
            self.values.append(int(value))

        def adding_all(spool, values):
            add_all(spool, values)
            self.values += map(int, values)

        monkeypatch.setattr(ElementSpool, "add", adding)
        monkeypatch.setattr(ElementSpool, "add_all", adding_all)


@pytest.mark.parametrize("checkpoints", sorted(CHECKPOINTS))
@pytest.mark.parametrize("drain", [False, True], ids=["stop", "drain"])
@pytest.mark.parametrize("failing", [0, 2], ids=["saved at once", "savepoint fails twice"])
@pytest.mark.parametrize("kind", sorted(GIVEN_ONCE))
def test_what_was_taken_from_outside_is_processed_before_the_job_stops(
    monkeypatch, tmp_path, kind, failing, drain, checkpoints
):
    taken = Taken(monkeypatch)
    with GIVEN_ONCE[kind]() as build:
        job, signal = started(build, tmp_path, "out", failing, **CHECKPOINTS[checkpoints])
        assert signal.came.wait(PATIENCE_S)
        stop(job, tmp_path, failing, drain)
    assert len(taken.values) >= 25 and taken.values == EVERYTHING[: len(taken.values)]
    assert numbers_in(tmp_path / "out") == taken.values


@pytest.mark.parametrize("kind", sorted(GIVEN_ONCE))
def test_job_that_continues_after_a_failed_stop_reads_to_the_end(monkeypatch, tmp_path, kind):
    with GIVEN_ONCE[kind]() as build:
        job, signal = started(build, tmp_path, "out", 1, **{"penstock.epoch.max-records": "500"})
        assert signal.came.wait(PATIENCE_S)
        with contextlib.suppress(CheckpointError):
            job.master.stop_with_savepoint(str(tmp_path / "savepoints"), False).result(PATIENCE_S)
        deadline = threading.Event()
        while len(numbers_in(tmp_path / "out")) < LAST and job.failure is None:
            assert not deadline.wait(0.01)
        job.master.cancel()
        job.join()
    assert numbers_in(Path(tmp_path) / "out") == EVERYTHING
