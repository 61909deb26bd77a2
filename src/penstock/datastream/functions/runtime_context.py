"""What a running function can ask about its subtask, and where it gets its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.datastream.accumulators import Accumulator
    from penstock.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.metrics import MetricGroup


class KeyedStateStore(ABC):
    """Gives access to keyed state; each handle shows the value of the key being processed.

    Keyed state exists on keyed streams only. Asking twice for the same descriptor gives the same state.

    `KeyedStream.process` has an example.
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """A single value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of elements per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """One value per key, the reduction of all values added."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """One accumulator per key, fed by all values added."""


class DistributedCache(ABC):
    """Files registered with `env.register_cached_file(path, name)`, readable in every subtask.

    >>> import pathlib, tempfile
    >>> from penstock.datastream import MapFunction
    >>> class Known(MapFunction):
    ...     def open(self, runtime_context):
    ...         words = runtime_context.get_distributed_cache().get_file("words")
    ...         self.words = pathlib.Path(words).read_text().split()
    ...     def map(self, value):
    ...         return value, value in self.words
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "words.txt").write_text("to be")
    ...     env.register_cached_file(f"{folder}/words.txt", "words")
    ...     list(env.from_collection(["be", "bee"]).map(Known()).execute_and_collect())
    [('be', True), ('bee', False)]
    """

    @abstractmethod
    def get_file(self, name: str) -> str:
        """Local path of the file registered under `name`."""


class RuntimeContext(KeyedStateStore):
    """Where a function runs: its subtask, metrics, accumulators, cached files and state.

    >>> from penstock.datastream import MapFunction
    >>> from penstock.datastream.accumulators import IntCounter
    >>> class Counted(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.seen = IntCounter()
    ...         runtime_context.add_accumulator("seen", self.seen)
    ...     def map(self, value):
    ...         self.seen.add(1)
    ...         return value
    >>> _ = env.from_collection(["a", "b"]).map(Counted()).print()
    >>> env.execute("counting").get_accumulator_result("seen")
    a
    b
    2
    """

    @abstractmethod
    def get_task_name(self) -> str:
        """Name of the task, as in the job's plan."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the task."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Max parallelism of the task: the number of its key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Number of this subtask, from 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often this subtask was restarted; 0 for the first attempt."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Task name with subtask, counted from 1: `MyTask (3/6)`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Value of the global job parameter `key`."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where this operator registers its metrics."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator; `JobExecutionResult` shows all subtasks' values merged under `name`.

        A name can be registered once per task; a second time is an error.
        """

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        """The accumulator this subtask registered under `name`."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Files registered with the environment."""

    @abstractmethod
    def get_broadcast_variable(self, name: str) -> list[Any]:
        """All elements of the broadcast variable `name`, in no particular order."""

    @abstractmethod
    def has_broadcast_variable(self, name: str) -> bool:
        """True if a broadcast variable of that name was given to this operator."""

    def get_broadcast_variable_with_initializer(self, name: str, initializer: Callable[[list[Any]], Any]) -> Any:
        """The broadcast variable `name`, turned into another form such as a dict by `initializer`."""
        return initializer(self.get_broadcast_variable(name))
