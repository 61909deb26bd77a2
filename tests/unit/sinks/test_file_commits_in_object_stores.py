"""Part files in an object store are shown side by side; one that cannot be does not keep the others hidden."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from object_store import ObjectStore, object_store

from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.datastream.connectors.file_system.part_files import InProgressFileToCleanup, PartFile
from penstock.jobmaster.sinks.sink_commits import PendingRequest


@pytest.fixture
def objects() -> Iterator[ObjectStore]:
    with object_store() as server:
        yield server


def hidden_parts(objects: ObjectStore, number: int) -> list[PartFile]:
    parts = [PartFile(f"bucket/out/{each}/part", f"bucket/out/{each}/.part", 5) for each in range(number)]
    for part in parts:
        objects.objects[part.hidden_path.removeprefix("bucket/")] = b"lines"
    return parts


def shown(objects: ObjectStore) -> list[str]:
    return [name for name in objects.names("out/") if name.endswith("/part")]


def test_all_files_are_shown_and_those_put_together_go(objects):
    parts = hidden_parts(objects, 20)
    objects.objects["out/0/.small"] = b""
    committer = FileCommitter(objects.uri("out"))
    requests = [PendingRequest(each) for each in [InProgressFileToCleanup("bucket/out/0/.small"), *parts]]
    committer.commit(requests)
    committer.commit(requests)  # As after a restart.
    assert len(shown(objects)) == 20 and not [name for name in objects.names() if "/." in name]
    committer.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("commit")]


def test_file_that_was_changed_fails_alone(objects):
    parts = hidden_parts(objects, 10)
    objects.objects["out/4/.part"] = b"cut"
    committer = FileCommitter(objects.uri("out"))
    requests = [PendingRequest(each) for each in parts]
    committer.commit(requests)
    committer.close()
    assert [number for number, each in enumerate(requests) if each.reason is not None] == [4]
    assert len(shown(objects)) == 9
