"""What programs reach through PyFlink's Java handles."""

from __future__ import annotations

import socket
import threading

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.compat.pyflink_alias import pyflink_as_penstock
from penstock.datastream import DataStream, StreamExecutionEnvironment


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    )


@pytest.mark.parametrize("module", ["util.java_utils", "datastream.stream_execution_environment"])
def test_what_is_set_in_the_handles_configuration_changes_the_environment(module):
    env = environment()
    with pyflink_as_penstock():
        namespace: dict[str, object] = {}
        exec(f"from pyflink.{module} import get_j_env_configuration as found", namespace)
    handle = namespace["found"](env._j_stream_execution_environment)  # type: ignore[operator]
    Configuration(j_configuration=handle).set_integer("parallelism.default", 3)
    assert env.get_parallelism() == 3
    Configuration(handle).set_integer("parallelism.default", 5)  # A copy, as always
    assert env.get_parallelism() == 3


def test_text_from_a_socket_through_javas_environment():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"a b\nc\n")

        threading.Thread(target=serve, daemon=True).start()
        env = environment()
        java_stream = env._j_stream_execution_environment.socketTextStream(*server.getsockname(), "\n", 0)
        words = DataStream(java_stream).flat_map(lambda line: line.split())
        assert list(words.execute_and_collect()) == ["a", "b", "c"]


def test_the_rest_of_javas_environment_is_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match=r"_j_stream_execution_environment\.getConfig: there is no Java"):
        environment()._j_stream_execution_environment.getConfig()


def test_a_stream_of_nothing_is_refused():
    with pytest.raises(InvalidProgramError, match=r"streams are made by an environment.*got 7"):
        DataStream(7)  # type: ignore[arg-type]
