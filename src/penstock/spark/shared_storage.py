"""Whether a job on a cluster keeps something where its driver and all executors must find it."""

from __future__ import annotations

from penstock.checkpoint.options import CheckpointOptions
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.datastream.connectors.spark.data_frame import DataFrameSource
from penstock.datastream.connectors.spark.data_frame_stream import StreamingDataFrameSource
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.job_contents import commits_with_checkpoints, hears_of_checkpoints, values_in
from penstock.jobmaster.restart_strategy import NoRestart, build_restart_strategy
from penstock.spark.master_names import is_local_master


def check_storage_is_shared(master: str, job_graph: JobGraph, config: Configuration) -> None:
    """On a cluster the executors must reach the folder where state is kept, if any is."""
    is_one_machine = is_local_master(master) or master.startswith("local-cluster")
    is_shared = CheckpointOptions.of(config).directory or config.get_optional(keys.WORKING_DIR)
    if is_one_machine or is_shared:
        return
    why = why_kept(job_graph, config)
    if why is not None:
        raise ConfigurationError(
            f"{keys.CHECKPOINT_DIR.key} is not set, but {why}, and the job runs on {master}: set it to a folder that "
            f"the driver and all executors reach under the same path"
        )


def why_kept(job_graph: JobGraph, config: Configuration) -> str | None:
    """Why a job writes to its checkpoint storage, if nobody asks it for a savepoint; None if it does not."""
    nodes = [node for vertex in job_graph.vertices for node in vertex.nodes]
    if not job_graph.is_batch:
        if config.get_optional(keys.CHECKPOINT_INTERVAL) is not None:
            return f"the job takes checkpoints ({keys.CHECKPOINT_INTERVAL.key})"
        if not isinstance(build_restart_strategy(config, has_checkpoints=False), NoRestart):
            return f"the job restarts from checkpoints ({keys.RESTART_STRATEGY.key})"
        if hears_of_checkpoints(job_graph.vertices):
            return "a function of the job is notified of checkpoints, so it ends with one"
    for node in nodes:
        if commits_with_checkpoints(node.operator):
            return f"sink '{node.name}' commits with a checkpoint"
        if any(isinstance(each, (DataFrameSource, StreamingDataFrameSource)) for each in values_in(node.operator)):
            return f"source '{node.name}' keeps the rows of its DataFrame in the checkpoints' folder"
    return None
