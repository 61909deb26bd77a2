"""What a user names by a path is found, and what is wrong with it is reported."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder, folder_at
from penstock.checkpoint.savepoints import write_savepoint
from penstock.common import Types
from penstock.common.exceptions import CheckpointError, CorruptStateError
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import Fault, FaultPlan, FaultyFolder, JobInEpochs


class Price:
    """A class that is part of state."""


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._price = runtime_context.get_state(ValueStateDescriptor("price"))

    def process_element(self, value, ctx):
        self._count.update((self._count.value() or 0) + 1)
        self._price.update(Price())
        yield value, self._count.value()


def counting(stream):
    return stream.key_by(lambda value: value % 3).process(Count()).name("count").uid("count")


@pytest.fixture
def folder(tmp_path) -> LocalFolder:
    return LocalFolder(str(tmp_path / "job"))


@pytest.fixture
def job(folder) -> JobInEpochs:
    """Has taken checkpoints 1, 2 and 3, which are all there."""
    job = JobInEpochs(counting, 2, folder=folder, retained=3)
    for _ in range(3):
        job.epoch([1, 2, 3])
    return job


def state_files(folder, number: int) -> list[Path]:
    return sorted(Path(folder.path, "shared").glob(f"v1-s*-e{number}-*"))


def damage(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at if at >= 0 else len(content) // 3] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "{}/_metadata"])
def test_checkpoint_is_found_by_its_folder_and_by_its_metadata(job, folder, form):
    found = find_checkpoint(form.format(f"{folder.path}/chk-2"))
    assert found.metadata.checkpoint_id == 2
    assert (found.folder, found.path) == (folder, f"{folder.path}/chk-2")


@pytest.mark.parametrize("format_type", ["canonical", "native"])
def test_savepoint_is_found_by_its_folder_and_by_its_metadata(job, tmp_path, format_type):
    path = write_savepoint(job.checkpoint, str(tmp_path / "savepoints"), format_type)
    for form in ("{}", "{}/_metadata"):
        found = find_checkpoint(form.format(path))
        assert (found.metadata.savepoint_format, found.folder) == (format_type, folder_at(path))


def test_folder_of_a_job_gives_its_newest_checkpoint(job, folder):
    assert find_checkpoint(folder.path).metadata.checkpoint_id == 3


def test_nothing_there_is_explained(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=rf"no checkpoint or savepoint at {path}: expected a folder with a "):
            find_checkpoint(str(path))


def test_folder_of_many_jobs_is_refused_with_the_newest_of_what_is_there(job, folder, tmp_path):
    savepoint = write_savepoint(job.checkpoint, str(tmp_path), "canonical")
    (tmp_path / "notes.txt").touch()
    damaged = tmp_path / "savepoint-damaged"
    damaged.mkdir()
    (damaged / "_metadata").write_text("nonsense")
    with pytest.raises(CheckpointError, match="name one of those below it") as caught:
        find_checkpoint(str(tmp_path))
    first, *listed = str(caught.value).splitlines()
    assert first.startswith(f"no checkpoint or savepoint at {tmp_path}: expected a folder")
    paths = {line.split()[0] for line in listed}
    assert paths == {savepoint.removeprefix("file://"), f"{folder.path}/chk-3"}
    assert all(re.search(r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)$", line) for line in listed)


def test_only_the_newest_few_are_listed(tmp_path):
    for number in range(8):
        job = JobInEpochs(counting, 1, folder=LocalFolder(str(tmp_path / f"job-{number}")), retained=1)
        job.epoch([1])
    with pytest.raises(CheckpointError, match=r"and 3 more$"):
        find_checkpoint(str(tmp_path))


# --- damage ----------------------------------------------------------------------------------------------------------


def remove_metadata(folder):
    Path(folder.path, "chk-3", "_metadata").unlink()


def cut_metadata(folder):
    path = Path(folder.path, "chk-3", "_metadata")
    path.write_bytes(path.read_bytes()[:-5])


def damage_metadata(folder):
    damage(Path(folder.path, "chk-3", "_metadata"))


def remove_state(folder):
    state_files(folder, 3)[0].unlink()


def cut_state(folder):
    path = state_files(folder, 3)[0]
    path.write_bytes(path.read_bytes()[:-1])


def damage_state(folder):
    damage(state_files(folder, 3)[0], at=30)


def damage_end_of_state(folder):
    path = state_files(folder, 3)[0]
    damage(path, at=path.stat().st_size - 5)


DAMAGES = [
    (remove_metadata, r"chk-3/_metadata is missing: the checkpoint was never completed, or was removed"),
    (cut_metadata, r"chk-3/_metadata is damaged or cut off: its checksum does not match"),
    (damage_metadata, r"chk-3/_metadata is damaged or cut off: its checksum does not match"),
    (remove_state, r"state file .*/shared/v1-s\d-e3-\w+ of operator 'count.*' is missing; it belongs to checkpoint 3"),
    (cut_state, r"state file .*/shared/v1-s\d-e3-\w+ of operator 'count.*' has \d+ bytes instead of \d+"),
    (damage_state, r"operator 'count': state '\w+' in state file .*/shared/v1-s\d-e3-\w+ is damaged"),
    (damage_end_of_state, r"state file .*/shared/v1-s\d-e3-\w+ is damaged or cut off: its end is not readable"),
]


@pytest.mark.parametrize(("inflict", "message"), DAMAGES, ids=[each.__name__ for each, _ in DAMAGES])
def test_older_checkpoint_is_taken_when_the_newest_is_damaged(job, folder, caplog, inflict, message):
    inflict(folder)
    with caplog.at_level(logging.WARNING):
        found = find_checkpoint(folder.path)
    assert found.metadata.checkpoint_id == 2
    [warning] = caplog.messages
    assert re.search(message, warning) and warning.endswith("; trying the checkpoint before it")
    assert JobInEpochs(counting, 1, restored=found).epoch([1, 2]) == ["(1, 3)", "(2, 3)"]


@pytest.mark.parametrize(("inflict", "message"), DAMAGES[1:5], ids=[each.__name__ for each, _ in DAMAGES[1:5]])
def test_damaged_checkpoint_that_was_named_is_an_error(job, folder, inflict, message):
    inflict(folder)
    with pytest.raises(CorruptStateError, match=message):
        find_checkpoint(f"{folder.path}/chk-3")


@pytest.mark.parametrize(("inflict", "message"), DAMAGES[5:], ids=[each.__name__ for each, _ in DAMAGES[5:]])
def test_damage_within_a_named_checkpoint_fails_the_restore(job, folder, inflict, message):
    inflict(folder)
    found = find_checkpoint(f"{folder.path}/chk-3")
    with pytest.raises(AssertionError, match=message) as caught:
        JobInEpochs(counting, 1, restored=found).epoch([])
    assert "record=None" in str(caught.value)


def test_no_checkpoint_is_left_when_a_file_of_all_is_damaged(job, folder, caplog):
    for path in state_files(folder, 1):
        damage(path, at=30)
    with pytest.raises(CorruptStateError, match=f"none of the checkpoints in {folder.path} is complete and undamaged"):
        find_checkpoint(folder.path)
    assert len(caplog.messages) == 3


def test_class_that_is_gone_is_named_with_its_file_operator_and_state(job, folder, monkeypatch):
    monkeypatch.delattr(sys.modules[Price.__module__], "Price")
    found = find_checkpoint(folder.path)
    message = r"operator 'count': state 'price' in state file .*/shared/v1-s\d-e1-\w+ cannot be read back"
    with pytest.raises(AssertionError, match=message):
        JobInEpochs(counting, 1, restored=found).epoch([])


# --- what is no damage -----------------------------------------------------------------------------------------------


def test_newer_format_is_no_reason_to_take_an_older_checkpoint(job, folder):
    path = Path(folder.path, "chk-3", "_metadata")
    path.write_bytes(path.read_bytes().replace(b'{"format": 1', b'{"format": 2'))
    with pytest.raises(CheckpointError, match=r"chk-3/_metadata has format 2, and this version .* reads up to 1"):
        find_checkpoint(folder.path)


@pytest.mark.parametrize("fault", [Fault("list"), Fault("read"), Fault("read", at=5), Fault("read", at=8)])
def test_storage_that_is_away_is_no_reason_to_take_an_older_checkpoint(job, folder, tmp_path, fault):
    """The sinks have shown what belongs to the newest: from an older one they would show it again."""
    plan = FaultPlan(str(tmp_path / "notes"), (fault,))
    with pytest.raises(CheckpointError, match=r"cannot be read now \(.*planned fault.*\); try again"):
        find_checkpoint(folder.path, lambda uri: FaultyFolder(folder_at(uri), plan))


@pytest.mark.parametrize("action", ["half", "damage"])
@pytest.mark.parametrize(
    ("path", "at"),
    [*((f"*/{vertex}-s0-e2-*", at) for vertex in ("v0", "v1") for at in (2, 3, 4)), ("*/chk-2/_metadata", 1)],
)
def test_checkpoint_that_was_written_wrong_is_never_read(folder, tmp_path, path, at, action):
    """The store says nothing: whichever write of the second checkpoint it spoils, the first one is taken."""
    plan = FaultPlan(str(tmp_path / "notes"), (Fault("write", at=at, action=action, path=path),))
    job = JobInEpochs(counting, 1, folder=FaultyFolder(folder, plan), retained=3)
    job.epoch([1, 2, 3])
    job.epoch([1, 2, 3])
    found = find_checkpoint(folder.path)
    assert found.metadata.checkpoint_id == 1
    assert JobInEpochs(counting, 1, restored=found).epoch([1]) == ["(1, 2)"]
