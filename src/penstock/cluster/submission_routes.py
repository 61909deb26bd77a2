"""The paths by which a client hands its job to a job manager, and follows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from threading import Thread
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from penstock.cluster.program_routes import program_routes
from penstock.cluster.session_cluster import SessionCluster
from penstock.common.exceptions import LeadershipLostError, PenstockError
from penstock.jobmaster.dependencies.blob_store import BlobError, Upload
from penstock.jobmaster.job_submission import JobSubmission
from penstock.jobmaster.sinks.output_channel import Event, OutputChannel
from penstock.rest.client import SUBMITTER
from penstock.rest.routes.endpoint import Call, endpoint
from penstock.rest.routes.errors import RestError, bad_request, not_found

_HEARTBEAT_S = 2
"""How often a waiting client gets a sign of life; its own disappearance is noticed as quickly."""
_MOST_FOLLOWERS = 200


def submission_routes(cluster: SessionCluster) -> list[BaseRoute]:
    routes = _SubmissionRoutes(cluster)
    return [
        Route("/jobs", endpoint(routes.submit, 202), methods=["POST"]),
        Route("/blobs/missing", endpoint(routes.missing), methods=["POST"]),
        Route("/blobs/{blob}", routes.upload, methods=["PUT"]),
        Route("/jobs/{job}/output", routes.output, methods=["GET"]),
        *program_routes(cluster),
    ]


class _SubmissionRoutes:
    def __init__(self, cluster: SessionCluster) -> None:
        self._cluster = cluster
        # Clients that wait for output wait in threads: they must not use up those that answer requests.
        self._followers: CapacityLimiter | None = None
        self._following = 0

    def submit(self, call: Call) -> dict[str, Any]:
        try:
            job_id = self._cluster.submit(JobSubmission.of_json(call.json()))
        except RestError:
            raise
        except LeadershipLostError as error:
            raise RestError(503, f"{error}; submit the job there") from error
        except PenstockError as error:
            raise bad_request(str(error)) from error
        return {"jobUrl": f"/jobs/{job_id}", "jobid": job_id}

    def missing(self, call: Call) -> dict[str, Any]:
        hashes = call.json().get("blobs")
        if not isinstance(hashes, list):
            raise bad_request('the body must name hashes: {"blobs": ["..."]}')
        try:
            return {"missing": self._cluster.blobs.missing(map(str, hashes)), "max-size": self._cluster.blobs.max_bytes}
        except PenstockError as error:
            raise bad_request(str(error)) from error

    async def upload(self, request: Request) -> Response:
        try:
            with self._cluster.blobs.upload(request.path_params["blob"]) as upload:
                await _receive(request, upload)
        except BlobError as error:
            raise RestError(error.status, str(error)) from error
        return JSONResponse({}, 201)

    async def output(self, request: Request) -> Response:
        job_id = request.path_params["job"]
        channel = self._cluster.channel(job_id)
        if channel is None:
            raise not_found(f"there is no output of job {job_id} to follow: it was submitted without waiting for it")
        if self._following >= _MOST_FOLLOWERS:
            raise RestError(
                503, f"{self._following} clients read the output of jobs, which is the most; ask again later"
            )
        is_submitter = channel.is_submitter(request.headers.get(SUBMITTER))
        lines = self._to_submitter(job_id, channel) if is_submitter else self._to_observer(channel)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def _to_submitter(self, job_id: str, channel: OutputChannel) -> AsyncIterator[bytes]:
        self._cluster.connect(job_id)
        try:
            async for lines in self._lines(channel, channel.read):
                yield lines
        finally:
            # In a thread: it may cancel the job, which takes a moment.
            Thread(target=self._cluster.disconnect, args=(job_id,), daemon=True).start()

    async def _to_observer(self, channel: OutputChannel) -> AsyncIterator[bytes]:
        with channel.observed() as observer:
            async for lines in self._lines(channel, observer.read):
                yield lines

    async def _lines(self, channel: OutputChannel, read: Callable[[float], list[Event] | None]) -> AsyncIterator[bytes]:
        """Events as lines of JSON; an empty object now and then shows that both sides are there."""
        if self._followers is None:
            self._followers = CapacityLimiter(_MOST_FOLLOWERS)
        self._following += 1
        try:
            while (events := await to_thread.run_sync(read, _HEARTBEAT_S, limiter=self._followers)) is not None:
                yield b"".join(json.dumps(event).encode() + b"\n" for event in events or [{}])
            if not channel.is_suspended:
                yield b'{"end": true}\n'
        finally:
            self._following -= 1


async def _receive(request: Request, upload: Upload) -> None:
    async for piece in request.stream():
        await run_in_threadpool(upload.write, piece)
    await run_in_threadpool(upload.finish)
