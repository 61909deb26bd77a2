"""Starts a job on what its configuration names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from penstock.checkpoint.leadership import JobLeadership
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.job_client import JobClient
from penstock.common.job_id import JobID
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.descriptions import CollectSinkDescription, SourceDescription
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.job_output import CollectedValues
from penstock.jobmaster.local_dependencies import LocalDependencies
from penstock.jobmaster.local_job_client import LocalJobClient
from penstock.jobmaster.stage_executor import InlineExecutor, StageExecutor

# Looked up by name, so that nothing but the Spark target needs PySpark.
_SPARK_EXECUTOR = "penstock.spark.spark_executor"
# Looked up by name, because they stand above this package.
_DRIVER_SERVER = "penstock.rest.driver_server"
_REMOTE = "penstock.rest.remote_submission"


def start_job(
    job_graph: JobGraph,
    config: Configuration,
    dependencies: JobDependencies,
    spark: Any = None,
    announce: Callable[[str], None] | None = None,
) -> JobClient:
    """Start the job in a thread of this process, where `penstock list`, `cancel` and their like find it.

    With `execution.target: remote` a job manager elsewhere runs it. `announce` is told the job's id before it can print
    anything.
    """
    if config.get(keys.TARGET).lower() == "remote":
        remote: JobClient = importlib.import_module(_REMOTE).submit_job(
            job_graph, config, dependencies, spark, announce
        )
        return remote
    client = prepare_job(job_graph, _without_restarts_if_bounded(job_graph, config), dependencies, spark)
    importlib.import_module(_DRIVER_SERVER).make_controllable(client, config)
    if announce is not None:
        announce(f"Job has been submitted with JobID {client.get_job_id()}")
    return client.start()


def _without_restarts_if_bounded(job_graph: JobGraph, config: Configuration) -> Configuration:
    """A job that ends by itself, in the process of its own program, fails at the first error unless it says otherwise.

    Somebody waits for it and wants to see the error; a job that runs on and on is better off with a restart.
    """
    sources = [
        node.operator
        for vertex in job_graph.vertices
        for node in vertex.nodes
        if isinstance(node.operator, SourceDescription)
    ]
    if keys.RESTART_STRATEGY.key in config or not all(source.is_bounded for source in sources):
        return config
    return Configuration(config).set(keys.RESTART_STRATEGY, "none")


def prepare_job(
    job_graph: JobGraph,
    config: Configuration,
    dependencies: JobDependencies,
    spark: Any = None,
    job_id: JobID | None = None,
    leadership: JobLeadership | None = None,
) -> LocalJobClient:
    """A job that is ready to be started."""
    job_id = job_id or JobID.generate()
    executor = build_executor(job_id, job_graph, config, dependencies.with_settings(config), spark)
    master = JobMaster(job_id, job_graph, Configuration(config), executor, leadership=leadership)
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
