"""Programs are uploaded, run and deleted as Flink's jars are; refused unless `web.submit.enable` is true."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.session_cluster import SessionCluster
from penstock.cluster.uploaded_programs import ProgramError, ProgramRun, UploadedProgram
from penstock.common import config_keys as keys
from penstock.common.exceptions import InvalidProgramError, LeadershipLostError, PenstockError
from penstock.rest.routes.endpoint import Call, Handler, endpoint, flag_in, shown, text_in
from penstock.rest.routes.errors import RestError, bad_request
from penstock.rest.routes.json_response import JsonResponse

_FIELD = "jarfile"
_MOST_ARGUMENTS = 1_000
_MOST_READ_IN_VAIN = 1 << 20


def program_routes(cluster: SessionCluster) -> list[BaseRoute]:
    routes = _ProgramRoutes(cluster)
    return [
        Route("/jars", routes.list, methods=["GET"]),
        Route("/jars/upload", routes.upload, methods=["POST"]),
        Route("/jars/{jar}/plan", endpoint(routes.when_enabled(routes.plan)), methods=["GET", "POST"]),
        Route("/jars/{jar}/run", endpoint(routes.when_enabled(routes.run)), methods=["POST"]),
        Route("/jars/{jar}", endpoint(routes.when_enabled(routes.delete)), methods=["DELETE"]),
    ]


class _ProgramRoutes:
    def __init__(self, cluster: SessionCluster) -> None:
        self._cluster = cluster
        self._programs = cluster.programs

    def _check_enabled(self) -> None:
        if not self._cluster.dispatcher.config.get(keys.WEB_SUBMIT):
            raise RestError(
                403, f"programs may not be uploaded here; start the job manager with {keys.WEB_SUBMIT.key}: true"
            )

    def when_enabled(self, handler: Handler) -> Handler:
        def answer(call: Call) -> Any:
            self._check_enabled()
            try:
                return handler(call)
            except ProgramError as error:
                raise RestError(error.status, str(error)) from error

        return answer

    async def list(self, request: Request) -> Response:
        self._check_enabled()
        entries = await run_in_threadpool(lambda: [_entry(each) for each in self._programs.all()])
        return JsonResponse({"address": str(request.base_url).rstrip("/"), "files": entries})

    async def upload(self, request: Request) -> Response:
        try:
            self._check_enabled()
        except RestError:
            await _read_on(request)
            raise
        wanted = f"send one file as multipart/form-data, in the field {_FIELD}"
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise bad_request(wanted)
        try:
            async with request.form(max_files=1, max_fields=1) as form:
                file = form.get(_FIELD)
                if not isinstance(file, UploadFile):
                    raise bad_request(wanted)
                program = await run_in_threadpool(self._programs.add, file.filename or "", file.file)
        except HTTPException as error:  # What is sent is not such a form.
            raise bad_request(f"{wanted}: {error.detail}") from error
        except ProgramError as error:
            raise RestError(error.status, str(error)) from error
        return JsonResponse({"filename": f"/jars/{program.id}", "status": "success"})

    def delete(self, call: Call) -> dict[str, Any]:
        self._programs.delete(call.path["jar"])
        return {}

    def plan(self, call: Call) -> dict[str, Any]:
        program = self._programs.find(call.path["jar"])
        try:
            return self._programs.plan(program, _run_of(call.json()))
        except InvalidProgramError as error:
            raise bad_request(str(error)) from error

    def run(self, call: Call) -> dict[str, Any]:
        program = self._programs.find(call.path["jar"])
        run = _run_of(call.json())
        try:
            submission = self._programs.define_job(program, run, self._cluster.blobs)
            return {"jobid": self._cluster.submit(submission)}
        except LeadershipLostError as error:
            raise RestError(503, f"{error}; run the program there") from error
        except ProgramError:
            raise
        except PenstockError as error:
            raise bad_request(str(error)) from error


async def _read_on(request: Request) -> None:
    """Read some of what is not wanted: a client that is still sending when we close may never see the answer."""
    read = 0
    async for piece in request.stream():
        read += len(piece)
        if read > _MOST_READ_IN_VAIN:
            return


def _entry(program: UploadedProgram) -> dict[str, Any]:
    return {
        "id": program.id,
        "name": program.name,
        "uploaded": program.uploaded_ms,
        "entry": [{"name": each, "description": None} for each in program.modules],
    }


def _run_of(body: dict[str, Any]) -> ProgramRun:
    settings = body.get("flinkConfiguration") or {}
    if not isinstance(settings, dict) or not all(isinstance(each, str) for each in settings.values()):
        raise bad_request(f"flinkConfiguration must be an object of texts, got {shown(settings)}")
    own: dict[str, str | None] = {
        keys.PARALLELISM.key: _parallelism(body),
        keys.SAVEPOINT_PATH.key: text_in(body, "savepointPath"),
        keys.IGNORE_UNCLAIMED_STATE.key: "true" if flag_in(body, "allowNonRestoredState") else None,
        keys.CLAIM_MODE.key: text_in(body, "claimMode"),
        keys.ATTACHED.key: "false",  # Nobody waits for its output.
    }
    given = {key: value for key, value in own.items() if value is not None}
    return ProgramRun(text_in(body, "entryClass"), _arguments(body), {**settings, **given})


def _parallelism(body: dict[str, Any]) -> str | None:
    value = body.get("parallelism")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 32768:
        raise bad_request(f"parallelism must be a number from 1 to 32768, got {shown(value)}")
    return str(value)


def _arguments(body: dict[str, Any]) -> tuple[str, ...]:
    given = body.get("programArgsList")
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > _MOST_ARGUMENTS or not all(isinstance(each, str) for each in given):
        raise bad_request(f"programArgsList must be a list of at most {_MOST_ARGUMENTS} texts, got {shown(given)}")
    return tuple(given)
