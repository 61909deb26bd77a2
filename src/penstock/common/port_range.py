"""Ports as Flink's configuration names them: `8081`, `50100-50200`, or `8081,50100-50200`; 0 is any free one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from penstock.common.exceptions import ConfigurationError

_HIGHEST = 65535


def ports_in(text: str, key: str) -> Iterator[int]:
    """The ports to try, in this order. If the text names none, ConfigurationError names the key.

    >>> list(ports_in("8081, 50100-50102", "rest.bind-port"))
    [8081, 50100, 50101, 50102]
    """
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 1, 0
        if not 0 <= low <= high <= _HIGHEST:
            raise ConfigurationError(
                f"{key}: {part.strip()!r} in {text!r} is neither a port nor a range of ports; write ports from 0 to "
                f"{_HIGHEST} like 8081, 50100-50200 or 8081,50100-50200, or 0 for any that is free"
            )
        yield from range(low, high + 1)


def listen(host: str, ports: str, key: str, backlog: int) -> socket.socket:
    """A socket that listens on the first free one of these ports; `host` may be a name, an IPv4 or an IPv6 address."""
    taken: list[str] = []
    for port in ports_in(ports, key):
        try:
            return _bound(host.strip("[]"), port, backlog)
        except OSError as error:
            taken.append(f"{port} ({error.strerror})")
    raise OSError(f"cannot listen on {host}, port {', '.join(taken)}; set {key} to a free one or to a range")


def _bound(host: str, port: int, backlog: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A name may have addresses of both kinds: clients that connect by number most often mean IPv4.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    is_any = address[0] == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(address, family=family, backlog=backlog, dualstack_ipv6=is_any)
