"""Trailing slashes of paths."""

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.checkpoint_storage import FileSystemCheckpointStorage
from pyflink.datastream.state_backend import EmbeddedRocksDBStateBackend

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


print(FileSystemCheckpointStorage("file:///tmp/checkpoints/").get_checkpoint_path())
print(FileSystemCheckpointStorage("file:///tmp//checkpoints").get_checkpoint_path())
backend = EmbeddedRocksDBStateBackend()
backend.set_db_storage_paths("file:///tmp/rocks/", "/tmp/other/")
print(list(backend.get_db_storage_paths()))
