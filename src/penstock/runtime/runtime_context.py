"""The RuntimeContext that user functions get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import StateAccessError
from penstock.datastream.accumulators import Accumulator
from penstock.datastream.functions import DistributedCache, RuntimeContext
from penstock.datastream.state import StateDescriptor
from penstock.metrics import MetricGroup

if TYPE_CHECKING:
    from penstock.runtime.operators.base import OperatorContext


class _LocalCache(DistributedCache):
    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def get_file(self, name: str) -> str:
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            raise StateAccessError(
                f"no cached file is registered as '{name}' (registered: {known}); call "
                f"env.register_cached_file(path, '{name}') before execute()"
            )
        return self._files[name]


class StreamingRuntimeContext(RuntimeContext):
    """One operator's context. It refuses keyed state if the stream is not keyed."""

    def __init__(self, context: OperatorContext, has_keyed_state: bool) -> None:
        self._context = context
        self._has_keyed_state = has_keyed_state

    @property
    def operator_context(self) -> OperatorContext:
        """For the runtime alone."""
        return self._context

    def get_task_name(self) -> str:
        return self._context.task.task_name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.task.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._context.task.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._context.task.subtask

    def get_attempt_number(self) -> int:
        return self._context.task.attempt

    def get_task_name_with_subtasks(self) -> str:
        task = self._context.task
        return f"{task.task_name} ({task.subtask + 1}/{task.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._context.task.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._context.metric_group

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        if name in self._context.accumulators:
            raise StateAccessError(
                f"operator '{self._context.operator_name}': an accumulator '{name}' is registered already; give each a "
                f"name of its own"
            )
        self._context.accumulators[name] = accumulator

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        if name not in self._context.accumulators:
            raise StateAccessError(
                f"operator '{self._context.operator_name}': no accumulator '{name}'; call add_accumulator in open()"
            )
        accumulator: Accumulator[Any, Any] = self._context.accumulators[name]
        return accumulator

    def get_distributed_cache(self) -> DistributedCache:
        return _LocalCache(self._context.cached_files)

    def get_broadcast_variable(self, name: str) -> list[Any]:
        raise StateAccessError(
            f"operator '{self._context.operator_name}': there is no broadcast variable '{name}'; on data streams use "
            f"stream.broadcast(descriptor) and connect(...)"
        )

    def has_broadcast_variable(self, name: str) -> bool:
        return False

    # The five state getters differ only in the descriptor's type, by which the backend chooses the state.
    def _keyed_state(self, state_descriptor: StateDescriptor) -> Any:
        if not self._has_keyed_state:
            raise StateAccessError(
                f"operator '{self._context.operator_name}': keyed state '{state_descriptor.name}' was asked for on a "
                f"stream that is not keyed; call key_by(...) before this operator"
            )
        return self._context.keyed_state.state(state_descriptor)

    get_state = _keyed_state
    get_list_state = _keyed_state
    get_map_state = _keyed_state
    get_reducing_state = _keyed_state
    get_aggregating_state = _keyed_state
