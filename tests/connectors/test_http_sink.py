"""HttpSink against a real server of this process."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from server_sink_job import ServerSinkJob

from penstock.common.exceptions import ConnectorError
from penstock.common.serialization import SerializationSchema, SimpleStringSchema
from penstock.datastream.connectors import OnRefused
from penstock.datastream.connectors.http import HttpBody, HttpSink
from penstock.datastream.connectors.support.refused_records import REFUSED_METRIC


class Service:
    """Remembers requests, and answers what it is told to."""

    def __init__(self):
        self.requests = []
        self.answers = []
        self.refuses = None
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.requests.append((self.command, self.path, dict(self.headers), body, self.client_address))
                status, headers = service.answers.pop(0) if service.answers else (200, {})
                if service.refuses is not None and service.refuses in body:
                    status = 422
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "2"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            do_POST = do_PUT = answer

            def log_message(self, *arguments):
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/in?x=1"

    @property
    def bodies(self):
        return [body for _, _, _, body, _ in self.requests]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service():
    running = Service()
    yield running
    running.close()


class Json(SerializationSchema):
    def serialize(self, element):
        return None if element == "nothing" else json.dumps(element).encode()


def sink(service, **settings):
    builder = HttpSink.builder().set_url(service.url).set_serializer(Json())
    for setting, value in settings.items():
        getattr(builder, f"set_{setting}")(value)
    return builder.build()


def test_batches_are_sent_as_json_over_one_connection(service, tmp_path):
    ServerSinkJob(sink(service, batch_size=2), tmp_path, int).write(5).end()
    assert [json.loads(body) for body in service.bodies] == [[0, 1], [2, 3], [4]]
    method, path, headers, _, _ = service.requests[0]
    assert (method, path, headers["Content-Type"]) == ("POST", "/in?x=1", "application/json")
    assert len({address for *_, address in service.requests}) == 1


def test_bodies_may_be_lines_or_single_elements(service, tmp_path):
    ServerSinkJob(sink(service, body=HttpBody.LINES), tmp_path, int).write(3).end()
    ServerSinkJob(sink(service, body=HttpBody.SINGLE, method="put"), tmp_path, int).write(2).end()
    assert service.bodies == [b"0\n1\n2\n", b"0", b"1"]
    assert [method for method, *_ in service.requests] == ["POST", "PUT", "PUT"]


def test_user_and_password_of_the_url_are_sent(service, tmp_path):
    url = service.url.replace("http://", "http://ada:se%3Acret@")
    for headers in ({}, {"authorization": "Bearer x", "content-type": "text/plain"}):
        builder = HttpSink.builder().set_url(url).set_serializer(SimpleStringSchema())
        for name, value in headers.items():
            builder.set_header(name, value)
        ServerSinkJob(builder.build(), tmp_path, lambda i: "1").write().end()
    plain, given = (sorted((n.lower(), v) for n, v in request[2].items()) for request in service.requests)
    assert ("authorization", "Basic YWRhOnNlOmNyZXQ=") in plain and ("content-type", "application/json") in plain
    assert [each for each in given if each[0] in ("authorization", "content-type")] == [
        ("authorization", "Bearer x"),
        ("content-type", "text/plain"),
    ]


def test_headers_are_sent_and_elements_without_bytes_left_out(service, tmp_path):
    builder = HttpSink.builder().set_url(service.url).set_serializer(Json()).set_header("Authorization", "Bearer x")
    ServerSinkJob(builder.build(), tmp_path, ["nothing", "b"].__getitem__).write(2).end()
    [(_, _, headers, body, _)] = service.requests
    assert (headers["Authorization"], body) == ("Bearer x", b'["b"]')


def test_batch_is_sent_after_some_time_and_before_a_checkpoint_is_complete(service, tmp_path):
    job = ServerSinkJob(sink(service, batch_interval_ms=100), tmp_path, int).write()
    assert service.bodies == []
    job.processing_time(100)
    assert service.bodies == [b"[0]"]
    job.write().checkpoint("snapshot")
    assert service.bodies == [b"[0]", b"[1]"]
    job.close()


def test_busy_service_is_asked_again(service, tmp_path):
    service.answers = [(503, {}), (429, {"Retry-After": "7"}), (200, {})]
    job = ServerSinkJob(sink(service), tmp_path, int).write()
    pauses = []
    job.operators[0].writer._pause = pauses.append
    job.end()
    assert (service.bodies, pauses) == ([b"[0]"] * 3, [0.1, 7.0])


def test_patience_comes_to_an_end(service, tmp_path):
    service.answers = [(503, {})] * 3
    job = ServerSinkJob(sink(service, max_retries=2), tmp_path, int).write()
    job.operators[0].writer._pause = lambda seconds: None
    with pytest.raises(ConnectorError, match=r"/in\?x=1 answered 503 in the last of 3 attempts: ok"):
        job.checkpoint()


def test_service_that_is_away_is_named(tmp_path):
    builder = HttpSink.builder().set_url("http://127.0.0.1:1/x").set_serializer(SimpleStringSchema())
    job = ServerSinkJob(builder.set_max_retries(1).build(), tmp_path).write()
    job.operators[0].writer._pause = lambda seconds: None
    with pytest.raises(ConnectorError, match=r"no answer from http://127.0.0.1:1/x in 2 attempts: ConnectionRefused"):
        job.checkpoint()


def test_refusal_fails_the_job(service, tmp_path):
    service.refuses = b"1"
    job = ServerSinkJob(sink(service), tmp_path, int).write(3)
    with pytest.raises(ConnectorError, match=r"answers 422 to 3 elements: ok"):
        job.checkpoint()


def test_refused_elements_are_found_and_skipped(service, tmp_path):
    service.refuses = b"1"
    job = ServerSinkJob(sink(service, on_refused=OnRefused.SKIP), tmp_path, [0, 1, {2}, 3].__getitem__)
    job.write(4).checkpoint()
    assert service.bodies == [b"[0,1,3]", b"[0]", b"[1]", b"[3]"]
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for name, metric in metrics.items() if name.endswith(REFUSED_METRIC)] == [2]
    job.close()


@pytest.mark.parametrize("status", [301, 401, 403, 404, 405, 501])
def test_answers_that_are_not_about_elements_skip_none(service, tmp_path, status):
    service.answers = [(status, {})]
    job = ServerSinkJob(sink(service, on_refused=OnRefused.SKIP), tmp_path, int).write(3)
    with pytest.raises(ConnectorError, match=f"answers {status} to 3 elements"):
        job.checkpoint()


def test_lines_with_a_line_break_are_refused(service, tmp_path):
    lines = HttpSink.builder().set_url(service.url).set_serializer(SimpleStringSchema()).set_body(HttpBody.LINES)
    with pytest.raises(ValueError, match="has a line break, so it would be two lines"):
        ServerSinkJob(lines.build(), tmp_path, lambda i: "a\nb").write()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda builder: builder.build(), r"no URL; call set_url"),
        (lambda builder: builder.set_url("ftp://x"), r"must begin with http:// or https:// and a host, got 'ftp://x'"),
        (lambda builder: builder.set_url("http://x").build(), r"no serializer; call set_serializer"),
        (lambda builder: builder.set_serializer(str), r"must be a SerializationSchema"),
        (lambda builder: builder.set_timeout_ms(-1), r"timeout_ms must not be negative, got -1"),
        (lambda builder: builder.set_timeout_ms(0), r"timeout_ms must be positive, got 0"),
    ],
)
def test_builder_says_what_is_missing_or_wrong(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build(HttpSink.builder())
