"""Files of a checkpoint that somebody reads stay, and collected values come once, whatever fails around them."""

from __future__ import annotations

import pickle
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_parts import (
    PATIENCE_S,
    RESTARTING,
    Numbered,
    NumbersEnumerator,
    NumbersSource,
    environment,
    file_sink,
    job_of,
    numbers_in,
    wait_until,
)
from shared_by_copies import SharedByCopies

from penstock.checkpoint import handles
from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import folder_at
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.savepoints import one_after_the_other, write_savepoint
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.exceptions import CheckpointError
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.functions import MapFunction
from penstock.graph.descriptions import CollectSinkDescription
from penstock.jobmaster import savepoint_requests
from penstock.jobmaster.savepoint_requests import SavepointRequest, SavepointWriter
from penstock.runtime.state.table import Extent
from penstock.testing import Fault, FaultPlan, FaultyFolder


def test_other_region_removes_nothing_of_a_checkpoint_that_becomes_a_savepoint(monkeypatch, tmp_path):
    """Between the choice of the newest checkpoint and its copy, other regions complete more of them."""
    completed = threading.Semaphore(0)
    write, add = SavepointWriter.write, CompletedCheckpointStore.add

    def write_late(*arguments):
        while completed.acquire(blocking=False):
            pass  # Only those that come from now on count.
        for _ in range(4):
            assert completed.acquire(timeout=PATIENCE_S), "other regions go on"
        write(*arguments)

    def add_counted(store, metadata):
        removed = add(store, metadata)
        completed.release()
        return removed

    monkeypatch.setattr(handles, "next_extent", lambda written: Extent.ALL)  # No file is part of two checkpoints.
    monkeypatch.setattr(SavepointWriter, "write", write_late)
    monkeypatch.setattr(CompletedCheckpointStore, "add", add_counted)
    env = environment()
    for region in range(2):
        counts = env.from_sequence(1, 10**7).key_by(lambda value: value).process(Numbered()).uid(f"numbered {region}")
        counts.sink_to(file_sink(tmp_path / f"region-{region}"))
    job = job_of(env, RESTARTING).start()
    try:
        path = job.master.trigger_savepoint(str(tmp_path / "savepoints"), "native").result(PATIENCE_S)
    finally:
        job.master.cancel()
        job.join()
    write_savepoint(find_checkpoint(path), str(tmp_path / "again"), "native")  # Reads every file of it.


class FailsAt(MapFunction):
    def __init__(self, numbers):
        self.left = numbers

    def map(self, value):
        if value in self.left:
            self.left.remove(value)
            raise RuntimeError(f"stumbled at {value}")
        return value


class Shared(SharedByCopies, set):
    """Not copied with the function, so that each failure happens once."""


@settings(max_examples=15)
@given(
    failing=st.sets(st.integers(1, 100), max_size=4),
    refused=st.sets(st.integers(1, 10), min_size=1, max_size=4),
    interval=st.sampled_from(["none", "5 ms"]),
)
def test_collected_values_come_once_although_checkpoints_fail(tmp_path_factory, failing, refused, interval):
    """With a checkpoint after every epoch, of which some fail and are tolerated, and with one now and then."""
    folder = tmp_path_factory.mktemp("job")
    plan = FaultPlan(str(folder / "notes"), tuple(Fault("rename", at=at, path="*/_metadata") for at in refused))
    env = environment()
    counts = env.from_sequence(1, 100).map(FailsAt(Shared(failing))).key_by(lambda value: 0).process(Numbered())
    counts._sink("collected", CollectSinkDescription("collected"))
    counts.sink_to(file_sink(folder / "out"))
    tolerant = {
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.tolerable-failed-checkpoints": "20",
    }
    often = {} if interval == "none" else {"execution.checkpointing.interval": interval}
    job = job_of(env, RESTARTING | tolerant | often, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan))
    job.start().join()
    assert list(job.collected) == list(range(1, 101))
    assert numbers_in(folder / "out") == list(range(1, 101))


class StoredNumbers(NumbersSource):
    """Keeps its splits in a file, and in checkpoints only where that file is."""

    def create_enumerator(self, enum_context):
        place = Path(folder_at(enum_context.get_storage_folder()).path)
        place.mkdir(parents=True)
        (place / "splits").write_bytes(pickle.dumps(self.splits))
        return self.restore_enumerator(enum_context, (str(place / "splits"), 0))

    def restore_enumerator(self, enum_context, checkpoint):
        return StoredNumbersEnumerator(enum_context, *checkpoint)


class StoredNumbersEnumerator(NumbersEnumerator):
    def __init__(self, context, path, dealt):
        self.path, self.all = path, pickle.loads(Path(path).read_bytes())
        super().__init__(context, self.all[dealt:])

    def snapshot_state(self, checkpoint_id):
        return self.path, len(self.all) - len(self.splits)


@pytest.mark.parametrize("has_savepoint", [True, False])
def test_files_of_a_source_outlive_the_job_if_a_savepoint_refers_to_them(tmp_path, has_savepoint):
    def job(out, **more):
        env = environment()
        numbers = env.from_source(StoredNumbers(1, 201), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        numbers.sink_to(file_sink(tmp_path / out))
        directory = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")}
        return job_of(env, RESTARTING | directory | more)

    first = job("first", **({"penstock.epoch.interval": "50 ms"} if has_savepoint else {})).start()
    if has_savepoint:
        wait_until(lambda: numbers_in(tmp_path / "first"))
        path = first.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False).result(PATIENCE_S)
    first.join()
    left = {each.name for each in (tmp_path / "checkpoints").glob("*/*")}
    assert left == ({"taskowned"} if has_savepoint else set())
    if has_savepoint:
        job("second", **{"execution.state-recovery.path": path}).start().join()
    assert sorted([*numbers_in(tmp_path / "first"), *numbers_in(tmp_path / "second")]) == list(range(1, 201))


@pytest.mark.parametrize("ask", ["checkpoint", "savepoint", "stop"])
@pytest.mark.parametrize("has_checkpoints", [True, False])
def test_whoever_asks_a_job_that_is_ending_hears_that(monkeypatch, tmp_path, ask, has_checkpoints):
    """Its regions have ended, and their checkpoints are being removed, which takes a while."""
    answers = []

    def ask_at_the_end(store):
        match ask:
            case "checkpoint":
                answers.append(job.master.trigger_checkpoint())
            case "savepoint":
                answers.append(job.master.trigger_savepoint(str(tmp_path / "savepoints")))
            case "stop":
                answers.append(job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False))
        close(store)

    close = CompletedCheckpointStore.close
    monkeypatch.setattr(CompletedCheckpointStore, "close", ask_at_the_end)
    env = environment()
    env.from_sequence(1, 100).print()
    job = job_of(env, RESTARTING if has_checkpoints else {})
    job.start().join()
    [answer] = answers
    with pytest.raises(CheckpointError, match=f"job {job.master.job_id} has ended before"):
        answer.result(PATIENCE_S)
    assert job.master.stopped_with is None


def test_job_waits_for_all_savepoints_that_its_regions_begin_at_once(monkeypatch, tmp_path):
    """Their files must stay until then. Each request may be completed by the thread of another region."""
    is_alive, may_write = threading.Thread.is_alive, threading.Event()

    def written_late(checkpoint, directory, format_type, run):
        assert may_write.wait(PATIENCE_S)
        return directory

    def asked_slowly(thread):
        threading.Event().wait(0.01)  # Others begin theirs in between.
        return is_alive(thread)

    monkeypatch.setattr(savepoint_requests, "write_savepoint", written_late)
    writer = SavepointWriter(folder_at(str(tmp_path)), one_after_the_other)
    requests = [SavepointRequest({frozenset({0})}, f"savepoint {number}") for number in range(8)]
    metadata = CheckpointMetadata("a" * 32, "the job", 1, 0, "", ())
    writer.write(requests[0], metadata, ExitStack())
    with monkeypatch.context() as slow:
        slow.setattr(threading.Thread, "is_alive", asked_slowly)
        regions = [threading.Thread(target=writer.write, args=(each, metadata, ExitStack())) for each in requests[1:]]
        for region in regions:
            region.start()
        for region in regions:
            region.join(PATIENCE_S)
    assert len(writer._threads) == len(requests)
    may_write.set()
    writer.wait()
    assert all(request.answer.done() for request in requests)
