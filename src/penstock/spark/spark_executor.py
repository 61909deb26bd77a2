"""What runs a job's stages on Spark, in streaming and in batch mode: the session, the job's files, copies of state."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from penstock.checkpoint.savepoints import Copy, one_after_the_other
from penstock.common.configuration import Configuration
from penstock.common.exceptions import CheckpointError, ConfigurationError
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.execution.stage_executor import StageExecutor, TakeOutput
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.codec import use_script_classes
from penstock.spark.context_settings import context_settings
from penstock.spark.dependencies import ShippedDependencies, ship
from penstock.spark.java_loss import java_loss
from penstock.spark.session import get_context
from penstock.spark.shared_storage import check_storage_is_shared
from penstock.spark.task_failures import reason_in
from penstock.spark.task_slots import free_slots, slot_ledger
from penstock.spark.worker_packages import context_for_workers

_log = logging.getLogger(__name__)


class SparkSide:
    """A job's Spark session, shared by the executors of its regions."""

    def __init__(
        self, job_id: str, job_graph: JobGraph, config: Configuration, dependencies: JobDependencies, spark: Any
    ) -> None:
        self.job_id = job_id
        self.job_graph = job_graph
        self.config = config
        self.context = get_context(config, dependencies.jars) if spark is None else _context_of(spark)
        check_storage_is_shared(str(self.context.master), job_graph, config)
        _check_no_speculation(self.context)
        self.dependencies = ship(self.context, dependencies, config)
        self.context_for_workers = context_for_workers(self.context, bool(self.dependencies.python_paths))
        self.take_output: TakeOutput = lambda content, is_wanted: None

    @property
    def job_name(self) -> str:
        return self.job_graph.job_name

    def loss(self) -> str | None:
        return java_loss(self.context)

    def executors(self) -> tuple[str, int]:
        known = int(self.context._jsc.sc().getExecutorMemoryStatus().size())  # The driver is one of them.
        return str(self.context.applicationId), max(1, known - 1)

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        """As a Spark job beside the running one, or here if Spark has no slot left.

        It holds a slot: workers that start meanwhile would take the last one, and stay.
        """
        listed = list(copies)
        ledger = slot_ledger(self.context)
        if not free_slots(self.context) or not ledger.take_one_if_free():
            _log.info("job '%s': Spark has no free slot, so the driver writes the savepoint itself", self.job_name)
            return one_after_the_other(listed)
        try:
            self.context.setJobGroup(f"{self.job_id}-savepoint", f"{self.job_name}: savepoint")
            carry_out = _CopyInWorker(self.dependencies, encode_in_driver(self.job_graph.script_classes))
            copied = self.context_for_workers.parallelize(listed, len(listed)).map(carry_out)
            return [_written(each) for each in copied.collect()]
        except (Py4JJavaError, PySparkException) as error:  # Which one depends on the version of PySpark.
            raise CheckpointError(reason_in(str(error))) from error
        finally:
            ledger.give_back(1)


def _written(answer: tuple[StateHandle, ...] | CheckpointError) -> tuple[StateHandle, ...]:
    if isinstance(answer, CheckpointError):
        raise answer
    return answer


@dataclass(frozen=True)
class _CopyInWorker:
    """Carries a copy out where the modules and classes are known that state may be made of."""

    dependencies: ShippedDependencies
    script_classes: bytes

    def __call__(self, copy: Copy) -> tuple[StateHandle, ...] | CheckpointError:
        self.dependencies.activate()
        use_script_classes(pickle.loads(self.script_classes))
        try:
            return copy()
        except CheckpointError as error:
            # As an answer: the message of a task that fails is lost among a hundred lines of Java's, and it would fail
            # again. Whatever else goes wrong, Spark may try again.
            return error


def build_executor(
    job_id: str, job_graph: JobGraph, config: Configuration, dependencies: JobDependencies, spark: Any
) -> StageExecutor:
    """In batch mode stages are exchanged by Spark's shuffle, otherwise between tasks that stay."""
    side = SparkSide(job_id, job_graph, config, dependencies, spark)
    if job_graph.is_batch:
        from penstock.spark.batch_executor import BatchExecutor

        return BatchExecutor(side)
    from penstock.spark.resident_executor import ResidentExecutor

    return ResidentExecutor(side)


def _context_of(spark: Any) -> SparkContext:
    """The context behind a session that the program has made."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigurationError(
            "use_spark_session got a session of Spark Connect, which has no SparkContext to run tasks with; make a "
            "classic one, with SparkSession.builder.master(...) instead of remote(...)"
        )
    return cast(SparkContext, spark.sparkContext)


def _check_no_speculation(context: Any) -> None:
    if context_settings(context).get("spark.speculation", "false").lower() == "true":
        raise ConfigurationError(
            "spark.speculation is true, but a stateful task cannot run twice at the same time; set it to false"
        )
