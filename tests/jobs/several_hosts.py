"""Hosts on one machine: network namespaces with addresses, host names and temporary folders of their own.

They are joined by a bridge in a namespace of its own, so nothing of the machine's network is touched. Needs root.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

# In a mount namespace of its own: the host's temporary folder takes the place of the machine's.
_ENTER = 'mount --bind "$1" /tmp && hostname "$2" && shift 2 && cd / && exec "$@"'


def can_make_hosts() -> bool:
    return os.geteuid() == 0 and all(shutil.which(each) for each in ("ip", "unshare", "mount"))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Host:
    def __init__(self, network: Network, number: int) -> None:
        self.name = f"host-{number}"
        self.address = f"10.77.0.{number}"
        self.tmp = network.folder / self.name / "tmp"
        self.tmp.mkdir(parents=True, mode=0o777)
        self._space = f"{network.prefix}-{number}"
        _ip("netns", "add", self._space)
        _ip("link", "add", "eth0", "netns", self._space, "type", "veth", "peer", f"p{number}", "netns", network.switch)
        _ip("-n", network.switch, "link", "set", f"p{number}", "master", "bridge", "up")
        _ip("-n", self._space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self._space, "link", "set", "lo", "up")
        _ip("-n", self._space, "link", "set", "eth0", "up")
        self._plug = (network.switch, f"p{number}")

    def command(self, *words: str) -> list[str]:
        """What runs these words on the host."""
        inside = ["unshare", "--mount", "--uts", "sh", "-c", _ENTER, "sh", str(self.tmp), self.name]
        return ["ip", "netns", "exec", self._space, *inside, *words]

    def cut_off(self) -> None:
        """Cuts it off from the others in both directions: no connection is closed."""
        _ip("-n", self._plug[0], "link", "set", self._plug[1], "down")

    def plug_in(self) -> None:
        _ip("-n", self._plug[0], "link", "set", self._plug[1], "up")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self._space], capture_output=True)


class Network:
    """Some hosts. What they share lies below `folder`, which all see."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.folder = folder
        self.prefix = f"pst{secrets.token_hex(3)}"
        self.switch = f"{self.prefix}-sw"
        _ip("netns", "add", self.switch)
        _ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "bridge", "up")
        self.hosts = [Host(self, number) for number in range(1, hosts + 1)]

    def remove(self) -> None:
        for host in self.hosts:
            host.remove()
        subprocess.run(["ip", "netns", "del", self.switch], capture_output=True)
