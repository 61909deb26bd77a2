"""Builds the Spark job of an epoch, with few calls to Java.

PySpark's RDDs ask Java some sixty times for a job of two stages: they look up the same classes, convert the same
settings and label the same steps for every epoch anew, and send their functions' code along. That was a third of a
small epoch. Here, what is the same for all epochs is made once, and a function is sent as its name and its arguments.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from py4j.java_collections import ListConverter, MapConverter
from pyspark import RDD
from pyspark.core.broadcast import _from_id
from pyspark.serializers import CPickleSerializer, NoOpSerializer

from penstock.runtime.rows import Row
from penstock.spark.stage_function import TaskFunction


class BroadcastReference:
    """A Spark broadcast as tasks get it. PySpark's own would ask Java for its number each time it is sent."""

    def __init__(self, broadcast: Any) -> None:
        self._number = int(broadcast._jbroadcast.id())

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return _from_id, (self._number,)


class EpochJobBuilder:
    """For the epochs of one deployment.

    :param broadcasts: What all tasks can read; they know it by a `BroadcastReference`.
    """

    def __init__(self, context: Any, slots: int, broadcasts: Sequence[Any]) -> None:
        self._context = context
        java, client = context._jvm, context._gateway._gateway_client
        self._new_function, self._new_rdd = java.SimplePythonFunction, java.PythonRDD
        self._new_pairs, self._new_partitioner = java.PairwiseRDD, java.PythonPartitioner
        self._values_of = java.PythonRDD.valueOfPair
        self._environment = MapConverter().convert(context.environment, client)
        self._includes = ListConverter().convert(context._python_includes, client)
        self._broadcasts = [each._jbroadcast for each in broadcasts]
        self._shared_broadcasts = ListConverter().convert(self._broadcasts, client)
        self._partitioners: dict[int, Any] = {}
        partitions = context.parallelize([], slots)
        self._start, self._start_serializer = partitions._jrdd.rdd(), partitions._jrdd_deserializer

    def build(self, functions: Sequence[TaskFunction], own_broadcasts: Sequence[Any] = ()) -> RDD[Row]:
        """The job: a Spark stage for each function, and an exchange of rows between two of them.

        :param own_broadcasts: What the tasks of this job can read besides.
        """
        rdd, reads = self._start, self._start_serializer
        rows = CPickleSerializer()
        for function in functions:
            writes = rows if function.partitions is None else NoOpSerializer()
            rdd = self._new_rdd(rdd, self._java_function(function, reads, writes, own_broadcasts), False, False)
            if function.partitions is not None:
                pairs = self._new_pairs(rdd).asJavaPairRDD().partitionBy(self._partitioner(function.partitions))
                rdd, reads = self._values_of(pairs).rdd(), rows
        return RDD(rdd.asJavaRDD(), self._context, rows)

    def _java_function(self, function: TaskFunction, reads: Any, writes: Any, own_broadcasts: Sequence[Any]) -> Any:
        command = pickle.dumps((function, None, reads, writes), pickle.HIGHEST_PROTOCOL)
        return self._new_function(
            bytearray(command),
            self._environment,
            self._includes,
            self._context.pythonExec,
            self._context.pythonVer,
            self._all_broadcasts(own_broadcasts),
            self._context._javaAccumulator,
        )

    def _all_broadcasts(self, own: Sequence[Any]) -> Any:
        if not own:
            return self._shared_broadcasts
        every = [*self._broadcasts, *(each._jbroadcast for each in own)]
        return ListConverter().convert(every, self._context._gateway._gateway_client)

    def _partitioner(self, partitions: int) -> Any:
        if partitions not in self._partitioners:
            # The second number tells partitioners of different functions apart; all of ours go by a row's subtask.
            self._partitioners[partitions] = self._new_partitioner(partitions, 0)
        return self._partitioners[partitions]
