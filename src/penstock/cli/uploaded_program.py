"""The process in which an uploaded program defines its job: `python -m penstock.cli.uploaded_program FOLDER`.

What to run is read from standard input, as JSON. The job that the program executes first is left in the folder, with
its plan, for the job manager that has started this process; the program ends there.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from penstock.cli.program import Program
from penstock.cluster.job_bundle import bundled
from penstock.cluster.uploaded_programs import PLAN, SUBMISSION
from penstock.common import JobID
from penstock.common.configuration import Configuration
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.compat.pyflink_alias import pyflink_as_penstock
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.launch import Launch, PlanOnlyExit, launching
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph
from penstock.rest.documents.jobs import plan_of


def main() -> None:
    folder, order = Path(sys.argv[1]), json.load(sys.stdin)
    program = Program(order["target"], order["is-module"], tuple(order["arguments"]), tuple(order["files"]))
    launch = Launch(order["settings"], start=lambda *job: _leave(folder, *job))
    with launching(launch), pyflink_as_penstock():
        try:
            program.run()
        except PlanOnlyExit:
            return


def _leave(
    folder: Path, job_graph: JobGraph, config: Configuration, dependencies: JobDependencies, spark: Any, *_: object
) -> Any:
    if any(isinstance(node.operator, CollectSinkDescription) for vertex in job_graph.vertices for node in vertex.nodes):
        raise UnsupportedFeatureError(
            "execute_and_collect: nobody would get the values of an uploaded program's job; use a sink"
        )
    if spark is not None:
        raise UnsupportedFeatureError("use_spark_session: an uploaded program's job runs on the job manager's session")
    with bundled(job_graph, config, dependencies) as bundle:
        for blob, content in bundle.blobs.items():
            if isinstance(content, Path):
                shutil.copyfile(content, folder / blob)
            else:
                (folder / blob).write_bytes(content)
        (folder / SUBMISSION).write_text(json.dumps(bundle.submission.to_json()))
    (folder / PLAN).write_text(json.dumps(plan_of(job_graph, JobID.generate().to_hex_string())))
    raise PlanOnlyExit


if __name__ == "__main__":
    main()
