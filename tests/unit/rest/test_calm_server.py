"""A server that nobody asks does not wake up ten times a second, and ends when it is told to."""

from __future__ import annotations

import contextlib
import fcntl
import resource
import socket
import urllib.request
from typing import Any

from penstock.rest import calm_server
from penstock.rest.calm_server import CalmServer
from penstock.rest.security.access import ServerAccess
from penstock.rest.server import LazyServer


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def test_server_wakes_up_when_it_is_asked_or_ended_and_not_otherwise(monkeypatch):
    monkeypatch.setattr(calm_server, "_TICK_S", 3600)
    ticked: list[Any] = []
    tick = CalmServer.on_tick

    async def noted(self: Any, counter: int) -> bool:
        ticked.append(self)  # Servers of other tests may still run in this process.
        return await tick(self, counter)

    monkeypatch.setattr(CalmServer, "on_tick", noted)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        server = LazyServer(listener, lambda: app, ServerAccess(None)).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        for _ in range(3):
            assert urllib.request.urlopen(address).read() == b"ok"
        assert ticked.count(server._server) == 1, "it has not checked whether it is to end"
        server.close(30)
        assert not server._thread.is_alive() and ticked.count(server._server) == 2
        server.close(30)  # Again: there is nothing left to end.


def test_server_answers_in_a_process_with_more_than_a_thousand_open_files():
    with contextlib.ExitStack() as stack:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most[1]), most[1]))
        first = stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 0))))
        number = fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, 2000)
        listener = stack.enter_context(contextlib.closing(socket.socket(fileno=number)))
        server = LazyServer(listener, lambda: app, ServerAccess(None)).start()
        stack.callback(server.close, 30)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert urllib.request.urlopen(address, timeout=30).read() == b"ok"
