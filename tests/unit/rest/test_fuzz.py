"""Whatever clients send, the REST API answers, and never with 500."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route

from penstock.cluster.submission_routes import submission_routes
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.job_submission import PYTHON
from penstock.rest.app import build_app
from penstock.rest.routes.operations import Operations
from penstock.rest.security.access_token import AccessToken
from penstock.rest.security.token_guard import TokenGuard

TOKEN = AccessToken("0123456789abcdef0123456789abcdef")

# --- what is sent ----------------------------------------------------------------------------------------------------

NASTY = [
    "", " ", ".", "..", "\0", "\ud800", "\udcff", "%00", "%", "²", "-1", "1e9", "NaN", "9" * 5000, "0" * 32, "f" * 64,
    "<script>", "'", '"', "{}", "[]", "null", "é", "\u202e", "\U0001f600", "a" * 10_000, "config", "metrics", "details",
]  # fmt: skip
KEYS = [
    "triggerId", "target-directory", "targetDirectory", "cancel-job", "formatType", "drain", "savepoint-path", "blobs",
    "graph", "configuration", "dependencies", "attached", "ends-with-client", "python", "job-id", "submitter",
    "checkpointType", "python-files", "archives", "requirements", "jars", "cached-files", "file", "folder", "name",
    "blob", "is-folder",
]  # fmt: skip
QUERIES = ["mode", "get", "agg", "jobs", "maxExceptions", "includeSerializedValue", "nonce", "subtasks", "taskmanagers"]


def is_harmless(text: str) -> bool:
    """Folders that are named here are made: below the folder of the test, and nowhere else."""
    return "/" not in text and not text.startswith("~") and text not in ("..", ".")


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


texts = (st.sampled_from(NASTY) | st.text(max_size=20)).filter(is_harmless)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    leaves,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | texts, below, max_size=6),
    max_leaves=15,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
submissions = st.fixed_dictionaries(
    {
        "graph": st.sampled_from(["0" * 64, "x"]) | values,
        "configuration": st.dictionaries(texts, leaves, max_size=3) | values,
        "dependencies": st.fixed_dictionaries(
            {
                "python-files": st.lists(values, max_size=2),
                "archives": st.lists(st.fixed_dictionaries({"file": values, "folder": values}), max_size=2),
                "requirements": st.lists(values, max_size=3),
                "jars": st.lists(values, max_size=2) | values,
                "cached-files": st.dictionaries(texts, values, max_size=2),
            }
        )
        | values,
        "attached": values,
        "ends-with-client": values,
        "python": st.just(PYTHON) | values,
        "job-id": st.none() | texts | values,
    }
)
DEEP = b"[" * 100_000
bodies = st.one_of(
    objects.map(lambda each: json.dumps(each).encode()),
    submissions.map(lambda each: json.dumps(each).encode()),
    values.map(lambda each: json.dumps(each).encode()),
    st.binary(max_size=50),
    st.sampled_from([b"", b"{", b"\xff", b"{}" * 3, DEEP, b'{"triggerId": "' + b"x" * 100_000 + b'"}', b"9" * 10_000]),
)
header_values = st.one_of(
    st.sampled_from(["[", "[::1", "a:b:c", "http://[", "evil.example", "localhost", "127.0.0.1:99999", "", "\xff"]),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=20),
)
headers = st.dictionaries(
    st.sampled_from(["host", "origin", "content-length", "content-type", "authorization", "penstock-submitter"]),
    header_values,
    max_size=3,
)


# --- who answers -----------------------------------------------------------------------------------------------------


class Api:
    """The application of a job manager with a job that runs and one that has ended."""

    def __init__(self, cluster: Any, running: str, ended: str, vertex: str) -> None:
        session = cluster.session
        app = build_app(session.dispatcher, Operations(60_000), lambda: None, submission_routes(session))
        self.app = TokenGuard(app, TOKEN)
        self.running, self.ended, self.vertex = running, ended, vertex
        self.routes = sorted({(method, route.path) for route in _routes(app.routes) for method in route.methods or ()})

    def ask(self, method: str, path: str, query: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        return asyncio.run(self._ask(method, path, query, body, headers))

    async def _ask(self, method: str, path: str, query: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        sent: list[Any] = []
        told = {"host": "localhost", "authorization": f"Bearer {TOKEN.secret}", **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "surrogateescape") if "\ud800" not in path else b"/",
            "query_string": query.encode("utf-8", "replace"),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
            "server": ("127.0.0.1", 8081),
            "client": ("127.0.0.1", 4711),
            "state": {},
        }
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


def _routes(routes: Any) -> Iterator[Route]:
    for route in routes:
        if isinstance(route, Route):
            yield route
        elif isinstance(route, Mount):
            yield from _routes(route.routes or ())


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, module_cluster: Any) -> Iterator[Api]:
    env = module_cluster.environment()
    env.from_collection([1]).map(lambda x: x).print()
    ended = str(env.execute("ended").get_job_id())
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
        server.settimeout(30)
        env = module_cluster.environment()
        env.socket_text_stream("localhost", server.getsockname()[1]).print()
        vertex = build_job_graph(env.get_stream_graph()).vertices[0].vertex_id
        client = env.execute_async("running")
        stack.enter_context(contextlib.closing(server.accept()[0]))
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        monkeypatch.chdir(tmp_path_factory.mktemp("made-by-requests"))
        yield Api(module_cluster, str(client.get_job_id()), ended, vertex)
        client.cancel().result(30)


def path_strategy(api: Api, path: str) -> st.SearchStrategy[str]:
    known = st.sampled_from([api.running, api.running, api.ended, "0" * 32])
    jobs = st.one_of(known, known, known, texts)
    others = st.one_of(st.just(api.vertex), st.sampled_from(["0", "1", "x"]), texts)
    parts = [
        {"job": jobs, "blob": texts}.get(part[1:-1], others) if part.startswith("{") else st.just(part)
        for part in re.split(r"(\{\w+\})", path)
    ]
    return st.tuples(*parts).map("".join)


requests_settings = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@requests_settings
@given(data=st.data())
def test_no_request_is_answered_with_500(api, data):
    method, route = data.draw(st.sampled_from(api.routes), "route")
    path = data.draw(path_strategy(api, route), "path")
    query = "&".join(
        f"{name}={value}" for name, value in data.draw(st.lists(st.tuples(st.sampled_from(QUERIES), texts), max_size=3))
    )
    body, given_headers = data.draw(bodies, "body"), data.draw(headers, "headers")
    if api.running in path and (method == "PATCH" or path.endswith("/stop") or b"cancel-job" in body):
        path = path.replace(api.running, "0" * 32)  # It is still needed.
    if path.endswith("/output") and api.running in path:
        path = path.replace(api.running, api.ended)  # Its answer has no end.
    status, answer = api.ask(method, path, query, body, given_headers)
    assert status < 500 or status in (503, 507), (status, answer)
    assert len(answer) < 200_000
    if status >= 400:
        assert json.loads(answer)["errors"]


@requests_settings
@given(method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "x"]), path=texts)
def test_no_path_is_answered_with_500(api, method, path):
    status, _ = api.ask(method, f"/{path}", "", b"", {})
    assert status < 500


def test_all_routes_are_there(api):
    """Otherwise the tests above would try nothing."""
    paths = {path for _, path in api.routes}
    assert {"/jobs", "/jobs/{job}/savepoints", "/blobs/{blob}", "/savepoint-disposal", "/jobmanager/config"} <= paths
    assert len(paths) > 35
    status, answer = api.ask("GET", f"/jobs/{api.running}/status", "", b"", {})
    assert (status, json.loads(answer)) == (200, {"status": "RUNNING"})


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=300) | st.lists(texts, max_size=6).map("\r\n".join).map(as_bytes))
def test_bytes_that_are_no_request_harm_nobody(module_cluster, content):
    with contextlib.closing(socket.create_connection(("127.0.0.1", module_cluster.port), timeout=30)) as connection:
        connection.sendall(content + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert b" 500 " not in connection.recv(65536)[:20]
    assert module_cluster.rest.get("/config")["features"]


# --- what was found without fuzzing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["[", "[::1", "[x]y", "]", "a[b"])
def test_half_an_address_as_host_is_refused(api, host):
    status, answer = api.ask("GET", "/jobs", "", b"", {"host": host})
    assert status in (200, 403) and b"Internal" not in answer


@pytest.mark.parametrize("trigger", [["a"], {"a": 1}, 7, True, "", "a\0b", "\ud800", "x" * 5000])
@pytest.mark.parametrize("operation", ["savepoints", "checkpoints", "savepoint-disposal"])
def test_trigger_that_is_no_text_is_refused(api, trigger, operation):
    path = "/savepoint-disposal" if operation == "savepoint-disposal" else f"/jobs/{api.running}/{operation}"
    body = {"triggerId": trigger, "savepoint-path": "x", "target-directory": "x"}
    status, answer = api.ask("POST", path, "", json.dumps(body).encode(), {})
    assert status == 400 and b"triggerId must be a text" in answer and len(answer) < 1000


@pytest.mark.parametrize("limit", ["²", "-1", "x", "9" * 5000, ""])
def test_limit_that_is_no_number_is_refused(api, limit):
    assert api.ask("GET", f"/jobs/{api.running}/exceptions", f"maxExceptions={limit}", b"", {})[0] in (200, 400)


def test_json_that_is_too_deep_is_refused(api):
    assert api.ask("POST", "/savepoint-disposal", "", DEEP, {})[0] == 400


def test_what_is_refused_is_not_repeated_whole(api):
    status, answer = api.ask("POST", "/savepoint-disposal", "", json.dumps(["x" * 100_000]).encode(), {})
    assert status == 400 and len(answer) < 1000
