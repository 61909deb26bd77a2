"""Sockets, the sink for nothing, and packages that are not there."""

from __future__ import annotations

import socket
import sys
import threading

import pytest

from penstock.common import Configuration, Types
from penstock.common.exceptions import ConnectorError, JobExecutionError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DiscardingSink, JdbcConnectionOptions, JdbcSink, socket_sink
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from penstock.datastream.connectors.redis import RedisMapper, RedisSink
from penstock.datastream.connectors.socket_sink import SocketSink, SocketWriter


def kafka_sink():
    builder = KafkaRecordSerializationSchema.builder().set_topic("t")
    schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()
    return KafkaSink.builder().set_bootstrap_servers("127.0.0.1:1").set_record_serializer(schema).build()


def jdbc_sink():
    return JdbcSink.sink(
        "select ?", Types.ROW([Types.STRING()]), JdbcConnectionOptions("jdbc:postgresql://127.0.0.1/x")
    )


def redis_sink():
    return RedisSink.builder().set_url("redis://127.0.0.1").set_mapper(RedisMapper.list("l", str)).build()


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


def test_a_server_that_reads_slowly_gets_each_element_once(monkeypatch):
    monkeypatch.setattr(socket_sink, "_CONNECT_TIMEOUT_S", 0.2)
    elements = [letter * 2_000_000 for letter in "abcdef"]  # More than fits into the buffers of both sides.
    with socket.create_server(("127.0.0.1", 0)) as server:
        writer = SocketWriter(SocketSink("127.0.0.1", server.getsockname()[1], SimpleStringSchema()))
        writing = threading.Thread(target=lambda: [writer.write(each, None) for each in elements] and writer.close())
        writing.start()
        connection, _ = server.accept()
        writing.join(0.5)
        assert writing.is_alive()  # It waits for the server.
        with connection, connection.makefile() as received:
            assert received.read() == "".join(elements)
        writing.join()


def test_wrong_ports_are_refused():
    with pytest.raises(ValueError, match="port must be from 1 to 65535, got 0"):
        SocketSink("127.0.0.1", 0, SimpleStringSchema())


def test_stream_may_end_nowhere(run_target):
    env = run_target()
    env.from_collection([1, 2]).sink_to(DiscardingSink()).name("nowhere")
    env.execute()


@pytest.mark.parametrize(
    ("package", "sink", "told"),
    [
        ("confluent_kafka", kafka_sink, r"KafkaSink needs the Python package 'confluent_kafka'.*'penstock\[kafka\]'"),
        ("psycopg", jdbc_sink, r"JdbcSink needs the Python package 'psycopg'.*pip install 'penstock\[postgres\]'"),
        ("redis", redis_sink, r"RedisSink needs the Python package 'redis'.*pip install 'penstock\[redis\]'"),
    ],
)
def test_missing_package_names_the_extra(package, sink, told, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # As if it were not installed.
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))
    env.from_collection(["a"]).sink_to(sink())
    with pytest.raises(JobExecutionError, match=told):
        env.execute()
