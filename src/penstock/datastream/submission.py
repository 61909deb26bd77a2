"""From a stream graph to a running job: the one place where the API meets what executes it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.config_checks import check_keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import MADE_AT, InvalidProgramError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.notices import notify
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.launch import Launch, PlanOnlyExit, SubmittedJob, current_launch
from penstock.datastream.script_classes import classes_of_script, definitions_of, imports_of_script
from penstock.datastream.unpicklable import culprit
from penstock.graph.descriptions import CollectionSourceDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.graph.stream_graph import StreamGraph

# Looked up by name: the API does not know what runs its jobs.
_STARTER = "penstock.cluster.start"


@dataclass
class Submission:
    """A job that was started, and the launch that it belongs to."""

    client: Any
    launch: Launch

    def wait(self) -> JobExecutionResult:
        """Wait for the end; Ctrl-C cancels the job and nothing of it stays behind."""
        try:
            result: JobExecutionResult = self.client.wait()
        except KeyboardInterrupt:
            self.client.cancel().result()
            announce = self.launch.announce or _to_stderr
            announce(f"Cancelled job {self.client.get_job_id()}.")
            raise
        return result

    def collect(self, collect_id: str) -> tuple[Iterator[Any], Callable[[], None]]:
        return iter(self.client.collected(collect_id)), self._end

    def _end(self) -> None:
        self.client.cancel().result()


def submit(
    stream_graph: StreamGraph, configuration: Configuration, dependencies: JobDependencies, spark: Any
) -> Submission:
    """Check the job and start it; with a plan-only launch, record it and end the script."""
    launch = current_launch()
    job_graph = build_job_graph(stream_graph)
    launch.submitted.append(
        SubmittedJob(
            stream_graph.job_name, stream_graph, job_graph, plan_json=stream_graph.get_streaming_plan_as_json()
        )
    )
    if launch.plan_only:
        raise PlanOnlyExit
    check_keys(configuration)
    check_picklable(job_graph)
    definitions = (*classes_of_script(), *imports_of_script(), *definitions_of(job_graph))
    job_graph = replace(job_graph, script_classes=definitions)
    start = launch.start or importlib.import_module(_STARTER).start_job
    client: JobClient = start(job_graph, configuration, dependencies, spark, launch.announce)
    launch.clients.append(client)
    if launch.on_start is not None:
        launch.on_start(client)
    return Submission(client, launch)


def notify_of_results_that_go_nowhere(stream_graph: StreamGraph) -> None:
    """Warn of operators whose results nothing reads: often a sink was forgotten, sometimes it is intended."""
    read = {edge.source for edge in stream_graph.edges}
    ends = [node.name for node in stream_graph.nodes.values() if node.id not in read and not node.is_sink]
    if ends:
        names = ", ".join(f"'{name}'" for name in ends)
        notify(
            f"nothing reads the results of {names}: they go nowhere; print(), sink_to(...) or execute_and_collect() "
            f"make them visible"
        )


def check_picklable(job_graph: JobGraph) -> None:
    """Raise for an operator whose function cannot travel to other processes, and name it."""
    for vertex in job_graph.vertices:
        for node in vertex.nodes:
            if isinstance(node.operator, CollectionSourceDescription):
                continue
            try:
                cloudpickle.dumps(node.operator)
            except Exception as error:
                found, place = culprit(node.operator), node.made_at
                because = str(error) if found is None else f"{found}: {error}"
                raise InvalidProgramError(
                    f"operator '{node.name}': its function cannot be sent to other processes ({because}); do not let "
                    f"it refer to open files, locks, connections or a SparkSession: make those in open()"
                    + ("" if place is None else f"\n{MADE_AT}{place}")
                ) from error


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)
