"""The sources of a region: asked and notified together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.restoring import RestoredJob
from penstock.common import config_keys as keys
from penstock.graph.descriptions import SourceDescription
from penstock.graph.job_graph import JobVertex
from penstock.jobmaster.region.epoch_plan import EpochPlan, Reading
from penstock.jobmaster.region.job import Job
from penstock.jobmaster.region.results import take_all_steps
from penstock.jobmaster.sources.source_coordinator import SourceCoordinator, build_source_coordinator
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.runtime.protocol import TaskAck
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment

Positions = dict[str, Any]
"""What a checkpoint keeps of each source, by operator id."""


class RegionSources:
    def __init__(self) -> None:
        self._by_vertex: dict[int, SourceCoordinator] = {}
        self._operator_ids: dict[int, str] = {}

    def start(
        self, vertices: Iterable[JobVertex], setup_of: Callable[[JobVertex], SourceSetup], restored: RestoredJob | None
    ) -> None:
        for vertex in vertices:
            head = vertex.head
            if isinstance(head.operator, SourceDescription):
                source = build_source_coordinator(head.operator, setup_of(vertex))
                self._by_vertex[vertex.id], self._operator_ids[vertex.id] = source, head.operator_id
                if restored is not None and head.operator_id in restored.positions:
                    source.restore(restored.positions[head.operator_id], restored.is_exact)
                source.start()

    def check(self) -> None:
        """Raise if a source has failed."""
        for source in self._by_vertex.values():
            source.check()

    def has_work(self) -> bool:
        return any(source.has_work() for source in self._by_vertex.values())

    def have_more(self, acks: list[TaskAck]) -> bool:
        """True if they could have given more in the epoch of `acks`, or have more for the next one already."""
        reports = (ack.outcome.source_report for ack in acks)
        return self.has_work() or any(report is not None and report.has_more for report in reports)

    @property
    def are_exhausted(self) -> bool:
        """True if nothing more will come: a job that was restored after its end has only to end."""
        return all(source.is_exhausted for source in self._by_vertex.values())

    def share_read(self) -> float | None:
        """How much of all of them was read, from 0 to 1; None if that is not known of one of them."""
        known = [source.share_read() for source in self._by_vertex.values()]
        shares = [share for share in known if share is not None]
        return sum(shares) / len(shares) if shares and len(shares) == len(known) else None

    @property
    def positions(self) -> Positions:
        return {self._operator_ids[vertex]: source.position for vertex, source in self._by_vertex.items()}

    def plan(self, plan: EpochPlan, epoch: int) -> list[Row]:
        """What each subtask reads in the epoch."""

        def planned(source: SourceCoordinator) -> dict[int, SourceAssignment]:
            match plan.reading:
                case Reading.NOTHING:
                    return {}
                case Reading.WHAT_IS_THERE:
                    return source.plan(epoch, plan.is_checkpoint)
                case Reading.WHAT_WAS_TAKEN:
                    return source.suspend(epoch)
                case Reading.TO_THE_END:
                    return source.end(epoch)

        return [
            Row(vertex, subtask, FROM_DRIVER, 0, 0, assignment.encode())
            for vertex, source in self._by_vertex.items()
            for subtask, assignment in planned(source).items()
        ]

    def epoch_complete(self, acks: list[TaskAck], duration_ms: int) -> None:
        for vertex, source in self._by_vertex.items():
            source.epoch_complete(_reports(acks, vertex), duration_ms)

    def notice_given(self, acks: list[TaskAck]) -> None:
        """Readers were notified of a checkpoint, and may have reported something in return."""
        for vertex, source in self._by_vertex.items():
            if reports := _reports(acks, vertex):
                source.epoch_complete(reports, 0)

    def checkpoint_complete(self, positions: Positions) -> None:
        take_all_steps(
            *(
                partial(source.checkpoint_complete, positions[self._operator_ids[vertex]])
                for vertex, source in self._by_vertex.items()
            )
        )

    def rewind(self, positions: Positions) -> None:
        for vertex, source in self._by_vertex.items():
            source.rewind(positions[self._operator_ids[vertex]])

    def resume(self) -> None:
        """The job continues although it was to stop."""
        for source in self._by_vertex.values():
            source.resume()

    def stop(self) -> None:
        take_all_steps(*(source.stop for source in self._by_vertex.values()))


def source_setup(
    job: Job, spools: Path, storage: Folder, on_change: Callable[[], None], vertex: JobVertex
) -> SourceSetup:
    """What the coordinator of a vertex's source needs to know; `on_change` is called when it may have something new."""
    head, is_batch = vertex.head, job.job_graph.is_batch
    parameters = job.config.get(keys.GLOBAL_JOB_PARAMETERS)
    return SourceSetup(
        vertex=vertex.id,
        operator_id=head.operator_id,
        name=head.name,
        made_at=head.made_at,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        folder=spools / head.operator_id,
        storage=storage.within(head.operator_id).uri,
        on_change=on_change,
        is_cancelled=lambda: job.is_cancelled,
        job_id=job.id_text,
        job_name=job.name,
        job_parameters=parameters or {},
        # A batch job is one epoch: its keyed operators begin when they have all their input.
        is_batch=is_batch,
        can_restart=is_batch or job.options.interval_ms is not None,
        config=job.config,
        alignment_groups=job.alignment_groups,
    )


def _reports(acks: list[TaskAck], vertex: int) -> dict[int, Any]:
    reports = {ack.subtask: ack.outcome.source_report for ack in acks if ack.vertex == vertex}
    return {subtask: report for subtask, report in reports.items() if report is not None}
