"""Which jobs need a folder that the whole cluster reaches."""

from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.serialization import Encoder
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import FileSink
from penstock.datastream.functions import CheckpointListener, MapFunction
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.spark.shared_storage import check_storage_is_shared

CLUSTER = "spark://host:7077"


class Hears(MapFunction, CheckpointListener):
    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        """Nothing to do."""


def printing(stream):
    stream.print()


def hearing(stream):
    stream.map(Hears()).print()


def committing(stream):
    stream.sink_to(FileSink.for_row_format("/out", Encoder.simple_string_encoder()).build())


def graph_of(build, is_batch: bool = False) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    if is_batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    build(env.from_sequence(1, 3))
    return build_job_graph(env.get_stream_graph())


def check(build, settings: dict[str, str], master: str = CLUSTER, is_batch: bool = False) -> None:
    check_storage_is_shared(master, graph_of(build, is_batch), Configuration.from_dict(settings))


NEEDS = [
    (printing, {"execution.checkpointing.interval": "1 s"}, "takes checkpoints"),
    (printing, {"restart-strategy.type": "fixed-delay"}, "restarts from checkpoints"),
    (hearing, {}, "is notified of checkpoints"),
    (committing, {}, "commits with a checkpoint"),
]


@pytest.mark.parametrize(("build", "settings", "why"), NEEDS)
def test_job_that_keeps_state_needs_a_folder_on_a_cluster(build, settings, why):
    with pytest.raises(
        ConfigurationError, match=rf"execution.checkpointing.dir is not set, but .*{why}.* on {CLUSTER}"
    ):
        check(build, settings)
    check(build, settings, master="local[2]")
    check(build, settings | {"execution.checkpointing.dir": "/shared"})
    check(build, settings | {"penstock.working-dir": "/shared"})


def test_folder_that_is_not_used_does_not_count():
    """Flink's `jobmanager` storage: what a job keeps goes with its driver."""
    settings = {"execution.checkpointing.dir": "/shared", "execution.checkpointing.storage": "jobmanager"}
    with pytest.raises(ConfigurationError, match="is not set"):
        check(committing, settings)


def test_job_that_keeps_nothing_needs_none():
    check(printing, {})
    check(printing, {"restart-strategy.type": "none"})
    check(printing, {"execution.checkpointing.interval": "1 s"}, is_batch=True)


def test_sink_commits_at_the_end_of_a_batch_job_as_well():
    with pytest.raises(ConfigurationError, match="commits with a checkpoint"):
        check(committing, {}, is_batch=True)
