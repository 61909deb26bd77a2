"""Sockets, the sink for nothing, and packages that are not there."""

from __future__ import annotations

import socket

import pytest

from penstock.common.exceptions import ConnectorError, EnvironmentSetupError, JobExecutionError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import DiscardingSink
from penstock.datastream.connectors.optional_packages import optional_package
from penstock.datastream.connectors.socket_sink import SocketSink, SocketWriter


def test_elements_are_sent_to_a_socket(run_target):
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = run_target(2)
        lines = env.from_collection(["a", "b", "c"]).map(lambda text: f"{text}\n")
        lines.write_to_socket("127.0.0.1", server.getsockname()[1], SimpleStringSchema())
        env.execute()
        connection, _ = server.accept()
        with connection, connection.makefile() as received:
            assert sorted(received.read().split()) == ["a", "b", "c"]


def test_socket_that_nobody_listens_on_fails_the_job(run_target):
    env = run_target(1)
    env.from_collection(["a"]).write_to_socket("127.0.0.1", 1, SimpleStringSchema())
    with pytest.raises(JobExecutionError, match=r"127.0.0.1:1 does not take elements after 1 attempts"):
        env.execute()


def test_socket_is_connected_again(tmp_path):
    pauses = []
    writer = SocketWriter(SocketSink("127.0.0.1", 1, SimpleStringSchema(), max_num_retries=2), pauses.append)
    with pytest.raises(ConnectorError, match="after 3 attempts"):
        writer.write("a", None)
    assert pauses == [0.5, 0.5]


def test_wrong_ports_are_refused():
    with pytest.raises(ValueError, match="port must be from 1 to 65535, got 0"):
        SocketSink("127.0.0.1", 0, SimpleStringSchema())


def test_stream_may_end_nowhere(run_target):
    env = run_target()
    env.from_collection([1, 2]).sink_to(DiscardingSink()).name("nowhere")
    env.execute()


def test_missing_package_names_the_extra():
    told = r"KafkaSink needs the Python package 'no_such_package'.*pip install 'penstock\[kafka\]'"
    with pytest.raises(EnvironmentSetupError, match=told):
        optional_package("no_such_package", "kafka", "KafkaSink")
