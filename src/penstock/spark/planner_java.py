"""Java for Flink's planner: Spark's process where one runs, else a small one of its own."""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException

from penstock.spark.java import find_java
from penstock.spark.session import quieten_py4j
from penstock.spark.spark_home import spark_home

# Plans are made in fractions of a second: a compiler that is ready soon does more for that than one that is thorough.
_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx1g"]
_starting = threading.Lock()
_own: JavaGateway | None = None
_newest: PlannerJava | None = None


class PlannerJava:
    """Loads classes beside Spark's own, from jars and from Java sources that are compiled when they are first used."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self._loader: Any = None

    def load(self, jars: Sequence[Path], sources: Path, class_name: str) -> Any:
        """The class, in a class loader that sees nothing of Spark: Flink's planner brings another Scala."""
        if self._loader is None:
            jvm = self.gateway.jvm
            urls = self.array(jvm.java.net.URL, [jvm.java.io.File(str(jar)).toURI().toURL() for jar in jars])
            flink = jvm.java.net.URLClassLoader(urls, jvm.java.lang.ClassLoader.getPlatformClassLoader())
            folders = self.array(jvm.java.io.File, [jvm.java.io.File(str(sources))])
            self._loader = jvm.org.codehaus.janino.JavaSourceClassLoader(flink, folders, None)
            self._loader.setTargetVersion(8)  # Else Janino refuses static methods of interfaces.
        return self._loader.loadClass(class_name)

    def create(self, java_class: Any, *arguments: Any) -> Any:
        """An object of the class, by its only constructor."""
        return java_class.getConstructors()[0].newInstance(self.array(self.gateway.jvm.java.lang.Object, arguments))

    def array(self, of: Any, items: Sequence[Any]) -> Any:
        made = self.gateway.new_array(of, len(items))
        for position, item in enumerate(items):
            made[position] = item
        return made

    def texts(self, items: Sequence[str]) -> Any:
        return self.array(self.gateway.jvm.java.lang.String, items)


def planner_java() -> PlannerJava:
    """Spark's Java if this process has started it, else one that is started for the planner and ends with this process.

    A process of Java loads the planner once: py4j looks methods up by the names of classes, and so confuses a class
    with the same one of another class loader.
    """
    global _newest
    with _starting:
        context = SparkContext._active_spark_context
        gateway = _own_gateway() if context is None else context._gateway
        if _newest is None or _newest.gateway is not gateway:
            _newest = PlannerJava(gateway)
        return _newest


def java_failure(error: BaseException) -> tuple[str, str] | None:
    """The class and the message of the exception in Java, and of its causes, if there was one."""
    if isinstance(error, Py4JJavaError):
        raised = error.java_exception
    elif isinstance(error, CapturedException):  # With a session, PySpark puts its own in the place of some of Java's.
        raised = error._origin
    else:
        return None
    name = str(raised.getClass().getSimpleName())
    texts: list[str] = []
    while raised is not None and len(texts) < 8:
        text = raised.getMessage()
        if text is not None and not any(text in said for said in texts):  # A wrapper often repeats its cause.
            texts.append(text)
        raised = raised.getCause()
    return name, "\n".join(texts)


def _own_gateway() -> JavaGateway:
    global _own
    if _own is None:
        quieten_py4j()
        jars = sorted((spark_home() / "jars").glob("*.jar"))
        needed = [jar for jar in jars if jar.name.startswith(("py4j-", "janino-", "commons-compiler-"))]
        port, token = launch_gateway(
            jarpath=str(next(jar for jar in needed if jar.name.startswith("py4j-"))),
            classpath=os.pathsep.join(map(str, needed)),
            javaopts=_OPTIONS,
            java_path=str(find_java()),
            die_on_exit=True,
            enable_auth=True,
            create_new_process_group=True,  # Ctrl-C is for Python.
            redirect_stderr=subprocess.DEVNULL,
        )
        _own = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        atexit.register(_own.shutdown)
    return _own
