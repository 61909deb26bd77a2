"""Write results to files that hold each of them once, although the job fails in between and reads its input again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from penstock.common import Configuration, RestartStrategies
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

folder = Path(tempfile.mkdtemp())


def fails_once(number):
    mark = folder / ".failed"
    if number == 25 and not mark.exists():
        mark.touch()
        raise RuntimeError("the machine is on fire")
    return number


class ByTens(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"from-{element // 10 * 10:02}"


config = Configuration().set_string("penstock.epoch.max-records", "5")  # Several checkpoints, for a short input.
env = StreamExecutionEnvironment.get_execution_environment(config)
env.enable_checkpointing(1)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 1000))
sink = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder()).with_bucket_assigner(ByTens()).build()
env.from_collection(range(40)).map(fails_once).sink_to(sink).name("by tens")
env.execute("exactly once")

for bucket in sorted(folder.glob("from-*")):
    lines = [line for file in bucket.glob("part-*") for line in file.read_text().split()]
    print(bucket.name, ",".join(sorted(lines)))
