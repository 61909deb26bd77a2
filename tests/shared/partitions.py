"""A network partition between two ends of a TCP connection: what arrives is dropped, and nobody is told."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys

import pytest

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A filter of one instruction, for Linux: keep 0 bytes of every packet."""

needs_partitions = pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters what a socket receives")


def cut_off(endpoint: socket.socket) -> None:
    """From now on this end of a TCP connection receives nothing, not even acknowledgements."""
    assert endpoint.family in (socket.AF_INET, socket.AF_INET6)
    program = ctypes.create_string_buffer(_DROP_ALL)
    endpoint.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(program)))
