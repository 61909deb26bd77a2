"""How a job is doing, at a glance: what a terminal shows while it runs, and `penstock status` and `top` ask for.

Penstock's own; everything in it is also reported, in more detail, by Flink's documents.
"""

from __future__ import annotations

from typing import Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.job_status import JobStatus
from penstock.common.redaction import redacted_text
from penstock.graph.execution_graph import ExecutionJobVertex, ExecutionState
from penstock.jobmaster.dispatcher import RunningJob
from penstock.jobmaster.epoch_history import Total
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.metrics.samples import shares
from penstock.rest.documents.epochs import level
from penstock.rest.documents.executions import now_ms

_WITHOUT_WORKER = {ExecutionState.CREATED, ExecutionState.SCHEDULED, ExecutionState.DEPLOYING}


def progress(job: RunningJob) -> dict[str, Any]:
    master = job.master
    master.look_at_batch()
    end = master.ended_ms
    sources = [vertex for vertex in master.execution_graph.job_vertices if not _inputs(master, vertex)]
    watermark = _watermark(master)
    records = sum(each.records_read for vertex in sources for each in vertex.subtasks)
    duration_ms = (now_ms() if end is None else end) - master.started_ms
    rates = _rates(master, sources)
    if master.job_graph.is_batch and end is None:
        # All of it is one epoch, which has not ended: the average so far.
        rates["records-per-second"] = round(1000 * records / max(1, duration_ms), 1)
    return {
        "jid": job.job_id,
        "name": master.name,
        "state": master.status.name,
        "waiting-for": _awaited(master),
        "start-time": master.started_ms,
        "end-time": -1 if end is None else end,
        "duration": duration_ms,
        "records": records,
        "share-done": None if (share := master.share_done()) is None else round(share, 4),
        "watermark": watermark,
        "watermark-lag": None if watermark is None else now_ms() - watermark,
        **rates,
        "checkpoint": _checkpoint(master),
        "failed-checkpoints": master.checkpoints.counts()["failed"],
        "restarts": master.restarts,
        "failure": redacted_text(failures[0].message) if (failures := master.failures) else None,
        "savepoint": master.stopped_with,
    }


def _inputs(master: JobMaster, vertex: ExecutionJobVertex) -> list[Any]:
    return master.job_graph.in_edges(vertex.job_vertex.id)


def _awaited(master: JobMaster) -> str | None:
    """What some tasks wait for before they can process anything; None if all of them can, or the job does not run."""
    if master.status is not JobStatus.RUNNING:
        return None
    states = {each.state for each in master.execution_graph.vertices()}
    if states & _WITHOUT_WORKER:
        return "workers"
    if ExecutionState.INITIALIZING not in states:
        return None
    has_state = master.checkpoints.restored is not None or master.checkpoints.latest_completed is not None
    return "state" if has_state else "functions"


def _watermark(master: JobMaster) -> int | None:
    """The lowest one downstream of the sources; None before the first, and after the last."""
    known = [
        each.current.facts.watermark
        for vertex in master.execution_graph.job_vertices
        if _inputs(master, vertex)
        for each in vertex.subtasks
    ]
    lowest = min((each for each in known if each is not None), default=MIN_LONG_VALUE)
    return lowest if MIN_LONG_VALUE < lowest < MAX_LONG_VALUE else None


def _rates(master: JobMaster, sources: list[ExecutionJobVertex]) -> dict[str, Any]:
    """Of the last seconds: what sources read, who is busiest, and who is held up most."""
    read = {vertex.job_vertex.id for vertex in sources}
    per_second, busiest, held_up = 0.0, (0.0, -1), (0.0, -1)
    for (vertex, _), recent in master.epochs.recent(now_ms()).items():
        busy, held = shares(recent)
        per_second += recent[Total.RECORDS_IN] if vertex in read else 0
        busiest, held_up = max(busiest, (busy, vertex)), max(held_up, (held, vertex))
    names = {each.id: each.name for each in master.job_graph.vertices}
    return {
        "records-per-second": round(per_second, 1),
        "busy": {"share": busiest[0], "vertex": names.get(busiest[1])},
        "backpressure": {"level": level(held_up[0]), "share": held_up[0], "vertex": names.get(held_up[1])},
    }


def _checkpoint(master: JobMaster) -> dict[str, int] | None:
    latest = master.checkpoints.latest_completed
    if latest is None:
        return None
    return {
        "id": latest.id,
        "completed": latest.trigger_timestamp_ms + latest.duration_ms,
        "duration": latest.duration_ms,
        "size": latest.state_size,
    }
