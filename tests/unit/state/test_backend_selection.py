"""Which backend a configuration asks for."""

from __future__ import annotations

import pickle

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, FsStateBackend, HashMapStateBackend
from penstock.runtime.state.backends import DiskBackend, HeapBackend, backend_of


def of(**settings: str):
    return backend_of(Configuration.from_dict({key.replace("__", "."): value for key, value in settings.items()}))


def test_state_is_in_memory_unless_said_otherwise():
    assert of() == HeapBackend(tracks_changes=True)


@pytest.mark.parametrize("kind", ["hashmap", "HASHMAP", "filesystem", "memory", "jobmanager"])
def test_names_of_state_in_memory(kind):
    assert of(state__backend__type=kind) == HeapBackend()
    assert of(state__backend=kind) == HeapBackend()


@pytest.mark.parametrize("kind", ["rocksdb", "forst"])
def test_names_of_state_on_disk(kind):
    assert of(state__backend__type=kind) == of(state__backend=kind) == DiskBackend()


def test_settings_of_state_on_disk():
    config = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": "/disk1/state, file:///disk2",
        "penstock.state.disk.cache-entries": "5000",
        "state.backend.rocksdb.memory.fixed-per-slot": "1 gb",
    }
    backend = backend_of(Configuration.from_dict(config), tracks_changes=False)
    assert backend == DiskBackend(("/disk1/state", "/disk2"), 5000, tracks_changes=False, memory_bytes=1 << 30)
    assert pickle.loads(pickle.dumps(backend)) == backend


def test_backends_of_programs_mean_the_same_as_their_settings():
    rocksdb = EmbeddedRocksDBStateBackend()
    rocksdb.set_db_storage_paths("/disk1", "file:///disk2")
    assert backend_of(Configuration.from_dict(rocksdb.configuration())) == DiskBackend(("/disk1", "/disk2"))
    assert backend_of(Configuration.from_dict(HashMapStateBackend().configuration())) == HeapBackend()
    assert backend_of(Configuration.from_dict(FsStateBackend("file:///checkpoints").configuration())) == HeapBackend()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"state__backend__type": "redis"}, "state.backend.type is 'redis', and there is no such state backend"),
        (
            {"state__backend__type": "rocksdb", "state__backend__rocksdb__memory__fixed-per-slot": "much"},
            "state.backend.rocksdb.memory.fixed-per-slot is 'much', which is not a memory size; write 512 mb",
        ),
        (
            {"state__backend__type": "rocksdb", "state__backend__rocksdb__localdir": "state"},
            "state.backend.rocksdb.localdir has 'state', which is not an absolute path",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        of(**settings)


def test_a_cache_of_nothing_is_refused():
    config = {"state.backend.type": "rocksdb", "penstock.state.disk.cache-entries": "0"}
    with pytest.raises(ConfigurationError, match=r"penstock.state.disk.cache-entries must be positive, got 0"):
        backend_of(Configuration.from_dict(config))
