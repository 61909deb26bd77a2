"""The sockets on which processes listen, read from /proc."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LISTENING = "0A"
_UNIX_ACCEPTS = 0x10000


@dataclass(frozen=True, order=True)
class Listening:
    """One socket. `address` is `ip:port` or a path; an abstract name of Linux begins with @."""

    family: str
    address: str
    pid: int
    command: str


def process_tree(pid: int) -> set[int]:
    """A process and all that come from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listening_sockets(pid: int) -> list[Listening]:
    """All sockets on which a process or one that comes from it waits for connections or datagrams."""
    listening = dict(_inet_sockets()) | dict(_unix_sockets())
    found = set()
    for each in process_tree(pid):
        try:
            command = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
            links = [os.readlink(link) for link in Path(f"/proc/{each}/fd").iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for link in links:
            inode = link.removeprefix("socket:[").removesuffix("]")
            if inode in listening:
                found.add(Listening(*listening[inode], each, command))
    return sorted(found)


def _inet_sockets() -> Iterator[tuple[str, tuple[str, str]]]:
    for name in ("tcp", "tcp6", "udp", "udp6"):
        table = Path(f"/proc/net/{name}")
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            local, state, inode = fields[1], fields[3], fields[9]
            if state == _LISTENING or name.startswith("udp"):
                yield inode, (name, _address(local))


def _address(text: str) -> str:
    """`0100007F:1F91` is 127.0.0.1:8081: words of four bytes, each in the order of the machine."""
    host, port = text.split(":")
    words = [host[at : at + 8] for at in range(0, len(host), 8)]
    packed = b"".join(struct.pack("=I", int(word, 16)) for word in words)
    name = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
    return f"{name}:{int(port, 16)}"


def _unix_sockets() -> Iterator[tuple[str, tuple[str, str]]]:
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if int(fields[3], 16) & _UNIX_ACCEPTS:
            yield fields[6], ("unix", fields[7] if len(fields) == 8 else "")
