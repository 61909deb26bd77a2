"""From a streaming DataFrame to files that Spark writes; killed and started again by the tests.

python spark_connectors_program.py INBOX OUT CHECKPOINTS [CHECKPOINT]
"""

from __future__ import annotations

import sys

from penstock.common import Configuration, Row, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.spark.session import get_session

ROWS = Types.ROW_NAMED(["id", "twice"], [Types.LONG(), Types.LONG()])


def main(inbox: str, out: str, checkpoints: str, recover: str | None = None) -> None:
    settings = {
        "execution.target": "inline",  # Spark has the source and the sink to itself, which is quicker to start.
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": checkpoints,
        "spark.master": "local[2]",
    }
    if recover is not None:
        settings["execution.state-recovery.path"] = recover
    config = Configuration.from_dict(settings)
    spark = get_session(config)
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)
    lines = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(inbox)
    rows = env.from_data_frame(lines).map(lambda row: Row(row.id, 2 * row.id), ROWS)
    rows.sink_to_spark("json", {"path": out})
    env.execute("numbers")


if __name__ == "__main__":
    main(*sys.argv[1:])
