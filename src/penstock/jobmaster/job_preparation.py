"""Makes a job ready to run on what its configuration names."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.checkpoint.leadership import JobLeadership
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.job_id import JobID
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.dependencies.local_dependencies import LocalDependencies
from penstock.jobmaster.execution.stage_executor import InlineExecutor, StageExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.local_job_client import LocalJobClient
from penstock.jobmaster.sinks.job_output import CollectedValues

# Looked up by name, so that nothing but the Spark target needs PySpark.
_SPARK_EXECUTOR = "penstock.spark.spark_executor"


def prepare_job(
    job_graph: JobGraph,
    config: Configuration,
    dependencies: JobDependencies,
    spark: Any = None,
    job_id: JobID | None = None,
    leadership: JobLeadership | None = None,
    is_watched: bool = False,
) -> LocalJobClient:
    """A job that is ready to be started. `is_watched`: somebody waits for its end, and wants to see its errors."""
    job_id = job_id or JobID.generate()
    executor = build_executor(job_id, job_graph, config, dependencies.with_settings(config), spark)
    master = JobMaster(job_id, job_graph, Configuration(config), executor, leadership=leadership, is_watched=is_watched)
    for vertex in job_graph.vertices:
        for node in vertex.nodes:
            if isinstance(node.operator, CollectSinkDescription):
                master.output.collected[node.operator.collect_id] = CollectedValues()
    return LocalJobClient(master)


def build_executor(
    job_id: JobID, job_graph: JobGraph, config: Configuration, dependencies: JobDependencies, spark: Any
) -> StageExecutor:
    match config.get(keys.TARGET).lower():
        case "inline":
            return InlineExecutor(LocalDependencies(dependencies, config))
        case "spark" | "local":
            module = importlib.import_module(_SPARK_EXECUTOR)
            executor: StageExecutor = module.build_executor(str(job_id), job_graph, config, dependencies, spark)
            return executor
    raise ConfigurationError(
        f"{keys.TARGET.key}: {config.get(keys.TARGET)!r} is not known; use spark (or local), inline or remote"
    )
