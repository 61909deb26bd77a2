from __future__ import annotations

import pickle

import pytest

from penstock.common.configuration import Configuration
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.time import Duration
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpoint_storage import (
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
)


def test_defaults_are_flinks():
    config = CheckpointConfig(Configuration())
    assert not config.is_checkpointing_enabled() and config.get_checkpoint_interval() == -1
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE  # while off
    assert (config.get_checkpoint_timeout(), config.get_min_pause_between_checkpoints()) == (600_000, 0)
    assert (config.get_max_concurrent_checkpoints(), config.get_tolerable_checkpoint_failure_number()) == (1, 0)
    assert config.is_fail_on_checkpointing_errors() and not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled() and not config.is_force_unaligned_checkpoints()
    assert config.get_aligned_checkpoint_timeout() == config.get_alignment_timeout() == Duration.of_millis(0)


def test_settings_write_through_to_the_configuration():
    configuration = Configuration()
    config = CheckpointConfig(configuration)
    config.set_checkpoint_interval(5000).set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    config.set_fail_on_checkpointing_errors(False).set_checkpoint_storage("file:///tmp/checkpoints")
    assert configuration.to_dict() == {
        "execution.checkpointing.interval": "5000",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.tolerable-failed-checkpoints": "2147483647",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": "file:///tmp/checkpoints",
    }
    assert config.is_externalized_checkpoints_enabled() and not config.is_fail_on_checkpointing_errors()


def test_what_the_configuration_says_is_read():
    configuration = Configuration.from_dict(
        {"execution.checkpointing.interval": "10 s", "execution.checkpointing.timeout": "1 min"}
    )
    config = CheckpointConfig(configuration)
    assert (config.get_checkpoint_interval(), config.get_checkpoint_timeout()) == (10_000, 60_000)
    assert config.is_checkpointing_enabled() and config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert not config.disable_checkpointing().is_checkpointing_enabled()


def test_unaligned_checkpoints_need_exactly_once():
    config = CheckpointConfig().set_checkpoint_interval(10).enable_unaligned_checkpoints()
    assert config.is_unaligned_checkpoints_enabled()
    assert not config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE).is_unaligned_checkpoints_enabled()


@pytest.mark.parametrize(
    ("setter", "value", "message"),
    [
        ("set_checkpoint_interval", 9, "checkpoint_interval must be at least 10, got 9"),
        ("set_checkpoint_timeout", 0, "checkpoint_timeout must be at least 10, got 0"),
        ("set_min_pause_between_checkpoints", -1, "must be at least 0, got -1"),
        ("set_max_concurrent_checkpoints", 0, "must be at least 1, got 0"),
        ("set_tolerable_checkpoint_failure_number", -1, "must be at least 0, got -1"),
    ],
)
def test_impossible_values_are_refused(setter, value, message):
    with pytest.raises(ValueError, match=message):
        getattr(CheckpointConfig(), setter)(value)


def test_storages_know_flinks_defaults_and_limits():
    assert JobManagerCheckpointStorage().get_max_state_size() == 5 * 1024 * 1024
    assert "maxStateSize: 100" in str(JobManagerCheckpointStorage("file:///tmp/x", 100))
    files = FileSystemCheckpointStorage("file:///tmp/x")
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (20480, 4096)
    assert FileSystemCheckpointStorage("/tmp/x", 100, 1).get_write_buffer_size() == 1
    assert pickle.loads(pickle.dumps(files)) == files


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JobManagerCheckpointStorage(None, 0), "max_state_size must be positive"),
        (lambda: FileSystemCheckpointStorage(), "checkpoint_path must not be empty"),
        (lambda: FileSystemCheckpointStorage("/x", 2_000_000), "file_state_size_threshold must be from 0 to 1048576"),
        (lambda: FileSystemCheckpointStorage("/x", 1, -7), "write_buffer_size must not be negative"),
    ],
)
def test_storages_refuse_impossible_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_old_backend_names_mean_a_backend_and_a_storage():
    files = {"execution.checkpointing.storage": "filesystem", "execution.checkpointing.dir": "file:///c"}
    assert MemoryStateBackend().configuration() == {
        "state.backend.type": "hashmap",
        "execution.checkpointing.storage": "jobmanager",
    }
    assert FsStateBackend("file:///c").configuration() == {"state.backend.type": "hashmap", **files}
    assert RocksDBStateBackend("file:///c", True).configuration() == {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.incremental": "true",
        **files,
    }
    assert FsStateBackend("file:///a") != FsStateBackend("file:///b") and HashMapStateBackend() == HashMapStateBackend()


def test_rocksdb_settings():
    backend = EmbeddedRocksDBStateBackend()
    assert not backend.is_incremental_checkpoints_enabled() and backend.get_number_of_transfer_threads() == 4
    assert (backend.get_options(), backend.get_predefined_options()) == (None, PredefinedOptions.DEFAULT)
    backend.set_db_storage_paths("/tmp/a", "file:///tmp/b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_number_of_transfer_threads(2)
    assert backend.get_db_storage_paths() == ["/tmp/a", "/tmp/b"]
    assert backend.configuration() == {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": "/tmp/a,/tmp/b",
        "state.backend.rocksdb.predefined-options": "FLASH_SSD_OPTIMIZED",
        "state.backend.rocksdb.checkpoint.transfer.thread.num": "2",
    }
    assert pickle.loads(pickle.dumps(backend)) == backend
    backend.set_db_storage_paths()
    assert backend.get_db_storage_paths() == []


def test_rocksdb_refuses_what_cannot_be():
    backend = EmbeddedRocksDBStateBackend(True)
    with pytest.raises(ValueError, match="'relative' is relative"):
        backend.set_db_storage_paths("relative")
    with pytest.raises(ValueError, match="'hdfs://x/y' is not local"):
        backend.set_db_storage_paths("hdfs://x/y")
    with pytest.raises(ValueError, match="must be positive, got 0"):
        backend.set_number_of_transfer_threads(0)
    with pytest.raises(UnsupportedFeatureError, match="a Java options factory cannot run here"):
        backend.set_options("org.example.Factory")


@pytest.mark.parametrize("kind", [CustomStateBackend, CustomCheckpointStorage])
def test_java_backends_say_what_to_use(kind):
    with pytest.raises(UnsupportedFeatureError, match="wraps a Java class, which cannot run here; use"):
        kind("org.example.Backend")
