"""A file sink with bucket assigners and names of one's own; what it writes, read again."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def written(stream, assigner, config=None):
    with tempfile.TemporaryDirectory() as folder:
        builder = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).with_bucket_assigner(assigner)
        builder = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        if config is not None:
            builder = builder.with_output_file_config(config)
        stream.sink_to(builder.build())
        env.execute()
        for file in sorted(Path(folder).rglob("*")):
            if file.is_file():
                yield file


names = OutputFileConfig.builder().with_part_prefix("numbers").with_part_suffix(".txt").build()
for file in written(env.from_collection([1, 2, 3], Types.INT()), BucketAssigner.base_path_bucket_assigner(), names):
    print(file.name.split("-")[0], file.name[-6:], file.read_text().splitlines())
for file in written(
    env.from_collection(["a", "b"], Types.STRING()), BucketAssigner.date_time_bucket_assigner("'y'yyyy")
):
    print(file.parent.name[:3], file.name[:5], file.name[-2:], file.read_text().splitlines())
PAIR = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
for file in written(env.from_collection([("x", 1.0), ("y", 2.5)], PAIR), BucketAssigner.base_path_bucket_assigner()):
    print(file.read_text().splitlines())
ROW = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
for file in written(env.from_collection([("ada", 36), ("bob", None)], ROW), BucketAssigner.base_path_bucket_assigner()):
    print(file.read_text().splitlines())
