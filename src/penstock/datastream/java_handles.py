"""What PyFlink's programs reach only through Java handles: the environment's configuration, and text from a socket.

    config = Configuration(j_configuration=get_j_env_configuration(env._j_stream_execution_environment))
    lines = DataStream(env._j_stream_execution_environment.socketTextStream("localhost", 9999))

The first changes the environment, the second is `env.socket_text_stream("localhost", 9999)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.configuration import Configuration
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.streams.data_stream import DataStream
    from penstock.graph.transformations import Transformation


@dataclass(frozen=True)
class JavaStream:
    """What a Java method returns, for `DataStream(...)` to wrap."""

    stream: DataStream


@dataclass(frozen=True)
class JavaEnvironment:
    """Stands for `env._j_stream_execution_environment`."""

    environment: StreamExecutionEnvironment

    def getConfiguration(self) -> Configuration:
        return self.environment._configuration

    def socketTextStream(self, hostname: str, port: int, delimiter: str = "\n", maxRetry: int = 0) -> JavaStream:
        return JavaStream(self.environment.socket_text_stream(hostname, port, str(delimiter), maxRetry))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedFeatureError(
            f"env._j_stream_execution_environment.{name}: there is no Java behind this API; of Java's environment "
            f"there are getConfiguration and socketTextStream, the rest is at env itself"
        )


def get_j_env_configuration(j_env: JavaEnvironment) -> Configuration:
    """The configuration of an environment; what is set in it takes effect, as in PyFlink."""
    return j_env.getConfiguration()


def stream_behind(given: Any) -> tuple[StreamExecutionEnvironment, Transformation]:
    """What `DataStream(given)` shows."""
    if not isinstance(given, JavaStream):
        raise InvalidProgramError(
            f"DataStream(...): streams are made by an environment, such as env.from_collection(...); got {given!r}"
        )
    return given.stream.get_execution_environment(), given.stream.transformation
