"""Who gets in over TCP, and whom clients believe."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import pickle
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.job_bundle import settings_of_job
from penstock.cluster.remote_job_client import RemoteJobClient
from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, JobExecutionError
from penstock.rest import sockets
from penstock.rest.client import Address, RestClient, RestClientError
from penstock.rest.security.access import ClientAccess, ServerAccess, check_binding
from penstock.rest.security.access_token import (
    AccessToken,
    configured_token,
    make_own_token,
    new_nonce,
    own_token,
    remove_own_token,
)
from penstock.rest.security.token_guard import TokenGuard, is_open
from penstock.rest.server import LazyServer

TOKEN = AccessToken("0123456789abcdef0123456789abcdef")


def asked(port: int, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response


# --- the server's side ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jobs/overview"),
        ("GET", "/v1/jobs/overview"),
        ("GET", "/jobmanager/config"),
        ("POST", "/jobs"),
        ("POST", "/blobs/missing"),
        ("PUT", f"/blobs/{'0' * 64}"),
        ("POST", "/savepoint-disposal"),
        ("DELETE", "/cluster"),
        ("GET", "/no/such/path"),
        ("POST", "/"),
        ("GET", "/assets"),
    ],
)
def test_nothing_is_answered_without_the_token(cluster, method, path):
    for headers in ({}, {"Authorization": "Bearer " + "0" * 64}, {"Authorization": cluster.token.secret}):
        response = asked(cluster.port, method, path, **headers)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert not cluster.has_ended.is_set()
    assert asked(cluster.port, method, path, Authorization=f"Bearer {cluster.token.secret}").status != 401


def test_files_of_the_dashboard_are_open_to_read_and_to_nothing_else():
    assert all(is_open({"method": "GET", "path": path}) for path in ("/", "/favicon.ico", "/assets/main.js"))
    closed = ("/jobs", "//", "/v1/", "/assets", "/v1/assets/main.js")
    assert not any(is_open({"method": "GET", "path": path}) for path in closed)
    assert not is_open({"method": "POST", "path": "/assets/main.js"})


def test_token_in_the_query_does_not_count(cluster):
    assert asked(cluster.port, "GET", f"/jobs/overview?token={cluster.token.secret}").status == 401


def test_token_is_the_users_alone_and_goes_with_the_server():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        access = ServerAccess.to(listener, Configuration())
        file = sockets.folder() / f"token-{port}"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert own_token(port) == access.token
        access.close()
        assert own_token(port) is None


def test_end_of_a_server_does_not_take_the_token_of_the_next_one():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        first = ServerAccess.to(listener, Configuration())
        second = ServerAccess.to(listener, Configuration())
        first.close()
        assert own_token(listener.getsockname()[1]) == second.token
        second.close()


def test_server_on_a_port_cannot_be_made_without_saying_who_gets_in():
    listener = socket.create_server(("127.0.0.1", 0))
    with contextlib.closing(listener), pytest.raises(ValueError, match="who gets in"):
        LazyServer(listener, lambda: None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_machines_are_let_in_only_with_a_token_or_if_it_is_meant(host, tmp_path):
    with pytest.raises(ConfigurationError, match=r"rest\.auth\.token-file"):
        check_binding(host, Configuration())
    (tmp_path / "token").write_text(TOKEN.secret + "\n")
    check_binding(host, Configuration.from_dict({"rest.auth.token-file": str(tmp_path / "token")}))
    check_binding(host, Configuration.from_dict({"rest.auth.enabled": "false"}))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.2.1"])
def test_this_machine_needs_no_settings(host):
    check_binding(host, Configuration())


@pytest.mark.parametrize("token", ["short", "", "with spaces in it, which no header has", "ümläute-ümläute-ümläute"])
def test_bad_tokens_are_refused_without_being_told(token):
    with pytest.raises(ConfigurationError, match="16 to 512") as caught:
        configured_token(Configuration.from_dict({"rest.auth.token": token}))
    assert not token or token not in str(caught.value)


def test_token_is_not_shown():
    assert TOKEN.secret not in repr(TOKEN) + repr(ClientAccess(TOKEN)) + repr(ServerAccess(TOKEN))


def test_how_a_client_connects_does_not_go_with_its_job():
    secrets = {"rest.auth.token": TOKEN.secret, "security.ssl.rest.key-password": "x", "parallelism.default": "2"}
    assert settings_of_job(Configuration.from_dict(secrets)) == {"parallelism.default": "2"}


@given(st.text(), st.integers(1, 65535))
def test_proof_is_of_no_use_for_another_nonce_address_or_token(nonce, port):
    proof = TOKEN.proof(nonce, "127.0.0.1", port)
    assert proof == TOKEN.proof(nonce, "127.0.0.1", port)
    others = [
        TOKEN.proof(nonce + "0", "127.0.0.1", port),
        TOKEN.proof(nonce, "::1", port),
        TOKEN.proof(nonce, "127.0.0.1", port % 65535 + 1),
        AccessToken.random().proof(nonce, "127.0.0.1", port),
    ]
    assert proof not in others


@pytest.mark.parametrize("nonce", ["", "x", "0" * 63, "0" * 65, "g" * 64])
def test_only_nonces_are_signed(cluster, nonce):
    assert asked(cluster.port, "GET", f"/auth/proof?nonce={nonce}").status == 400


# --- the client's side ---------------------------------------------------------------------------------------------

unpickled: list[str] = []


class Harmful:
    def __reduce__(self) -> Any:
        return unpickle, ()


def unpickle() -> None:
    unpickled.append("harm")


Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Stranger:
    """Somebody else's server on a port where a job manager is expected. Remembers all that it is sent."""

    answer: Answer
    heard: list[str] = field(default_factory=list)
    port: int = 0

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        self.heard.append(f"{handler.command} {handler.path}\n{handler.headers}")
        self.answer(handler)


def send(handler: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    content = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def start_stranger() -> Iterator[Callable[[Answer], Stranger]]:
    with contextlib.ExitStack() as stack:

        def start(answer: Answer) -> Stranger:
            stranger = Stranger(answer)

            class Handler(BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"

                def do_GET(self) -> None:
                    stranger.handle(self)

                do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

                def log_message(self, *_: Any) -> None:
                    pass

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            stranger.port = server.server_address[1]
            return stranger

        yield start


def harmful_result(handler: BaseHTTPRequestHandler) -> None:
    told = {
        "status": {"id": "COMPLETED"},
        "job-execution-result": {
            "application-status": "FAILED",
            "failure-cause": {"serialized-throwable": base64.b64encode(pickle.dumps(Harmful())).decode()},
        },
        "host": "127.0.0.1",
        "port": 1,
        "proof": "0" * 64,
    }
    send(handler, 200, told)


@pytest.mark.parametrize("has_old_token", [True, False])
def test_stranger_on_the_port_is_neither_told_the_token_nor_believed(start_stranger, has_old_token):
    stranger = start_stranger(harmful_result)
    token = make_own_token(stranger.port) if has_old_token else TOKEN  # Left by a server that was killed
    with pytest.raises(RestClientError, match="does not know the token" if has_old_token else "no token is known"):
        RestClient(Address(host="localhost", port=stranger.port)).post("/jobs", {"secret": "x"})
    job = RemoteJobClient(RestClient(Address(host="localhost", port=stranger.port)), "0" * 32, "job", [], False)
    with pytest.raises(JobExecutionError, match="token"):
        job.get_job_execution_result().result()
    assert unpickled == []
    assert not any(token.secret in each or "/jobs" in each for each in stranger.heard)
    (sockets.folder() / f"token-{stranger.port}").unlink(missing_ok=True)


def test_stranger_who_passes_the_question_on_to_the_real_server_is_found_out(cluster, start_stranger):
    def pass_on(handler: BaseHTTPRequestHandler) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(handler.command, handler.path)
            response = connection.getresponse()
            send(handler, response.status, json.loads(response.read()))

    stranger = start_stranger(pass_on)
    access = ClientAccess(cluster.token)
    with pytest.raises(RestClientError, match="somebody is in between"):
        RestClient(Address(host="127.0.0.1", port=stranger.port, access=access)).get("/jobs")
    assert not any(cluster.token.secret in each for each in stranger.heard)
    tunnel = ClientAccess(cluster.token, is_forwarded=True)
    with pytest.raises(RestClientError) as caught:  # The tunnel of this test does not pass on the token
        RestClient(Address(host="127.0.0.1", port=stranger.port, access=tunnel)).get("/jobs")
    assert caught.value.status == 401 and "as `Authorization" in str(caught.value)


def test_own_address_in_the_network_is_this_machine_too():
    """Who listens there may pass on what is asked to a server that only this machine reaches."""
    try:
        host = socket.gethostbyname(socket.gethostname())
        listener = socket.create_server((host, 0))
    except OSError:
        pytest.skip("this machine has no address")
    if host.startswith("127."):
        pytest.skip("this machine has no address but loopback's")
    with contextlib.closing(listener):
        access = ServerAccess(TOKEN)

        async def lie(scope: Any, receive: Any, send: Any) -> None:
            """As if the server behind it had answered."""
            scope["server"] = ("127.0.0.1", 8081)
            await TokenGuard(None, TOKEN)(scope, receive, send)

        server = LazyServer(listener, lambda: lie, replace(access, token=None)).start()
        address = Address(host=host, port=listener.getsockname()[1], access=ClientAccess(TOKEN))
        with pytest.raises(RestClientError, match="somebody is in between"):
            RestClient(address).get("/jobs")
        server.close(5)


def test_referral_to_a_stranger_is_not_followed_with_the_token(start_stranger):
    stranger = start_stranger(harmful_result)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        access = ServerAccess.to(listener, Configuration())

        async def refer(scope: Any, receive: Any, send: Any) -> None:
            location = (b"location", f"http://127.0.0.1:{stranger.port}/jobs".encode())
            await send({"type": "http.response.start", "status": 307, "headers": [location]})
            await send({"type": "http.response.body", "body": b""})

        server = LazyServer(listener, lambda: refer, access).start()
        port = listener.getsockname()[1]
        assert access.token is not None
        for known in (None, access.token):
            with pytest.raises(RestClientError, match="token"):
                RestClient(Address(host="127.0.0.1", port=port, access=ClientAccess(known))).get("/jobs")
        assert not any("Authorization" in each or "/jobs" in each for each in stranger.heard)
        server.close(5)


def test_connection_is_not_made_anew_after_the_proof(cluster, start_stranger):
    """Who answers on a second connection may be somebody else."""
    nonces: list[str] = []

    def prove_and_hang_up(handler: BaseHTTPRequestHandler) -> None:
        nonce = handler.path.partition("nonce=")[2]
        nonces.append(nonce)
        port = handler.server.server_address[1]  # type: ignore[index]
        proof = {"host": "127.0.0.1", "port": port, "proof": TOKEN.proof(nonce, "127.0.0.1", port)}
        send(handler, 200, proof, Connection="close")

    stranger = start_stranger(prove_and_hang_up)
    with pytest.raises(RestClientError, match="nobody answers"):
        RestClient(Address(host="127.0.0.1", port=stranger.port, access=ClientAccess(TOKEN))).get("/jobs")
    assert len(stranger.heard) == 1
    assert len(nonces[0]) == len(new_nonce())


def test_server_without_tokens_is_used_only_if_that_is_set(start_cluster):
    cluster = start_cluster({"rest.auth.enabled": "false"})
    with pytest.raises(RestClientError, match="no token is known"):
        cluster.rest.get("/jobs")
    access = ClientAccess.of(Configuration.from_dict({"rest.auth.enabled": "false"}))
    open_rest = RestClient(Address(host="127.0.0.1", port=cluster.port, access=access))
    assert open_rest.get("/jobs") == {"jobs": []}


def test_token_of_the_settings_is_used(start_cluster, tmp_path):
    cluster = start_cluster({"rest.auth.token": TOKEN.secret})
    assert own_token(cluster.port) is None
    (tmp_path / "token").write_text(TOKEN.secret)
    with (
        cluster.environment(**{"rest.auth.token-file": str(tmp_path / "token")})
        .from_collection([1, 2])
        .execute_and_collect() as values
    ):
        assert list(values) == [1, 2]


def test_own_job_manager_is_asked_through_its_socket(tmp_path):
    """No port, no token: only the socket in the private folder answers."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    own = sockets.listen(f"jobmanager-{port}")

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"via": "socket"}'})

    server = LazyServer(own.listener, lambda: answer).start()
    try:
        for host in ("localhost", "127.0.0.1", "::1"):
            assert RestClient(Address(host=host, port=port)).get("/overview") == {"via": "socket"}
    finally:
        server.close(5)
        own.remove()


# --- certificates --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with the key and the certificate of `localhost`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    store = folder / "store.pem"
    store.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return store


def tls(keystore: Path, **more: str) -> dict[str, str]:
    told = {"enabled": "true", "keystore": str(keystore), "truststore": str(keystore), **more}
    return {f"security.ssl.rest.{key.replace('_', '-')}": value for key, value in told.items()}


def test_job_goes_over_tls(start_cluster, keystore):
    cluster = start_cluster(tls(keystore))
    with cluster.environment(**tls(keystore)).from_collection([1]).execute_and_collect() as values:
        assert list(values) == [1]
    with pytest.raises(RestClientError, match="nobody answers"):
        cluster.rest.get("/jobs")  # Without TLS


def test_server_whose_certificate_is_not_trusted_is_not_told_the_token(start_cluster, keystore):
    cluster = start_cluster(tls(keystore))
    config = Configuration.from_dict({"security.ssl.rest.enabled": "true"})
    address = Address(host="localhost", port=cluster.port, access=ClientAccess.of(config))
    with pytest.raises(RestClientError, match="CERTIFICATE_VERIFY_FAILED"):
        RestClient(address).get("/jobs")


def test_clients_need_a_certificate_if_that_is_set(start_cluster, keystore):
    cluster = start_cluster(tls(keystore, authentication_enabled="true"))
    for settings, is_let_in in ((tls(keystore), False), (tls(keystore, authentication_enabled="true"), True)):
        access = ClientAccess.of(Configuration.from_dict(settings))
        rest = RestClient(Address(host="127.0.0.1", port=cluster.port, access=access))
        if is_let_in:
            assert rest.get("/jobs") == {"jobs": []}
        else:
            with pytest.raises(RestClientError, match="nobody answers"):
                rest.get("/jobs")


def test_address_with_https_is_not_asked_in_the_clear(keystore):
    with pytest.raises(RestClientError, match=r"security\.ssl\.rest\.enabled"):
        Address.parse("https://localhost:8081")
    access = ClientAccess.of(Configuration.from_dict(tls(keystore)))
    assert Address.parse("https://localhost:8081", access) == Address(host="localhost", port=8081)


def test_keystore_that_is_not_pem_is_reported_with_what_to_do(tmp_path):
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        with pytest.raises(ConfigurationError, match="openssl pkcs12"):
            ServerAccess.to(listener, Configuration.from_dict(tls(tmp_path / "store.jks")))
        with pytest.raises(ConfigurationError, match=r"needs security\.ssl\.rest\.keystore"):
            ServerAccess.to(listener, Configuration.from_dict({"security.ssl.rest.enabled": "true"}))


def test_a_server_that_starts_removes_the_tokens_of_killed_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.rest.sockets.folder", lambda: tmp_path)
    living = make_own_token(1001)
    (tmp_path / "token-1002").write_text("left by a process that was killed, so that nobody holds its lock")
    newest = make_own_token(1003)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["token-1001", "token-1003"]
    remove_own_token(1001, living)
    remove_own_token(1003, newest)
    assert list(tmp_path.iterdir()) == []


def test_the_token_of_a_later_server_on_the_same_port_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.rest.sockets.folder", lambda: tmp_path)
    first = make_own_token(1001)
    remove_own_token(1001, first)
    second = make_own_token(1001)
    remove_own_token(1001, first)
    other = make_own_token(1002)  # Would take it away if its lock were free.
    assert own_token(1001) == second
    remove_own_token(1001, second)
    remove_own_token(1002, other)
