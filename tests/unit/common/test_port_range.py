from __future__ import annotations

import contextlib
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import ConfigurationError
from penstock.common.port_range import listen, ports_in

KEY = "some.bind-port"
ranges = st.tuples(st.integers(0, 65535), st.integers(0, 20)).map(lambda each: (each[0], min(65535, sum(each))))


@given(st.lists(ranges, min_size=1, max_size=4))
def test_ranges_are_all_their_ports_in_order(parts):
    text = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
    assert list(ports_in(text, KEY)) == [port for low, high in parts for port in range(low, high + 1)]


@pytest.mark.parametrize("text", ["", "http", "70000", "-1", "9-8", "1,,2", "1-"])
def test_what_is_no_port_is_refused_by_the_name_of_its_key(text):
    with pytest.raises(ConfigurationError, match=KEY):
        list(ports_in(text, KEY))


def test_first_free_port_is_taken_and_if_there_is_none_the_key_is_named():
    with contextlib.closing(listen("127.0.0.1", "0", KEY, 1)) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=rf"127.0.0.1, port {port} \(.*set {KEY} to a free one or to a range"):
            listen("127.0.0.1", str(port), KEY, 1)
        with contextlib.closing(listen("127.0.0.1", f"{port},0", KEY, 1)) as second:
            assert second.getsockname()[1] != port


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_address_may_be_of_ipv6(host):
    with contextlib.closing(listen(host, "0", KEY, 1)) as listening:
        assert listening.family is socket.AF_INET6


def test_name_means_the_address_of_ipv4_if_it_has_one():
    with contextlib.closing(listen("localhost", "0", KEY, 1)) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
