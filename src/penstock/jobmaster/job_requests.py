"""Checkpoints and savepoints of a job that somebody has asked for: from the regions that take part to the answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.graph.regions import Region
from penstock.jobmaster.region.runner import RegionRunner
from penstock.jobmaster.savepoint_requests import CheckpointRequest, Request, SavepointRequest, SavepointWriter


class JobRequests:
    """Hands every request to all regions, and answers it when the last of them has done its part.

    What is asked before the regions exist waits for them, or fails with a job that never gets that far.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._lock = threading.RLock()
        """Held until a request is handed out: when `end` has returned, no savepoint can begin."""
        self._has_ended = False
        self._early: list[Request] = []
        self._runners: Sequence[RegionRunner] = ()

    def add(self, request: Request) -> None:
        with self._lock:
            if self._has_ended:
                self._fail(request)
            elif self._runners:
                self._hand_out(request)
            else:
                self._early.append(request)

    def begin(self, runners: Sequence[RegionRunner], checkpoints: JobCheckpoints, writer: SavepointWriter) -> None:
        """The regions exist: hand them what was asked for so far, before they run."""
        self._checkpoints, self._writer = checkpoints, writer
        with self._lock:
            self._runners = runners
            early, self._early = self._early, []
            for request in early:
                self._hand_out(request)

    def end(self) -> None:
        """The job is over. Regions have answered for what they were handed."""
        with self._lock:
            self._has_ended = True
            early, self._early = self._early, []
        for request in early:
            self._fail(request)

    def _fail(self, request: Request) -> None:
        request.fail(f"job {self._job_id} has ended before")

    def _hand_out(self, request: Request) -> None:
        for runner in self._runners:
            if not runner.request(request):
                self.region_ended(request, runner.region)

    def region_ended(self, request: Request, region: Region) -> None:
        """The region has ended before it could do anything, and its part of the checkpoint with it."""
        self.region_done(request, region)
        if isinstance(request, SavepointRequest):
            request.region_ended(region)

    def region_done(self, request: Request, region: Region) -> None:
        """The region has done its part of what was asked for."""
        if not request.region_done(region):
            return
        if self._checkpoints.latest is None:
            self._fail(request)  # All regions have ended, and none with a checkpoint.
            return
        is_drained = isinstance(request, SavepointRequest) and request.drains
        metadata, held = self._checkpoints.hold(proposed=is_drained)
        if isinstance(request, SavepointRequest):
            self._writer.write(request, metadata, held)
            return
        held.close()
        if isinstance(request, CheckpointRequest):
            request.answer.set_result(metadata.checkpoint_id)
