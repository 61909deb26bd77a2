"""Settings of a job that the program changes, as a view of its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from penstock.common import config_keys
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.constants import UPPER_BOUND_MAX_PARALLELISM
from penstock.common.execution_mode import ExecutionMode
from penstock.common.input_dependency_constraint import InputDependencyConstraint
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration

__all__ = ["ExecutionConfig"]

T = TypeVar("T")


class ExecutionConfig:
    """A live view of a Configuration: a change to one shows in the other.

    >>> env.get_config().set_auto_watermark_interval(50).get_auto_watermark_interval()
    50
    """

    #: Use the parallelism that the environment has by default.
    PARALLELISM_DEFAULT = -1

    #: Leave the parallelism as it is.
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration if configuration is not None else Configuration()

    def _set(self, option: ConfigOption[T], value: T) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """The parallelism of every operator that does not set its own; PARALLELISM_DEFAULT removes the setting."""
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(config_keys.PARALLELISM.key)
            return self
        if parallelism < 1:
            raise ValueError(
                f"parallelism must be at least 1, got {parallelism}; "
                "ExecutionConfig.PARALLELISM_DEFAULT (-1) means the environment's default"
            )
        return self._set(config_keys.PARALLELISM, parallelism)

    def get_parallelism(self) -> int:
        """The parallelism that was set, PARALLELISM_DEFAULT if none was."""
        parallelism = self._configuration.get_optional(config_keys.PARALLELISM)
        return self.PARALLELISM_DEFAULT if parallelism is None else parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """The number of key groups, and so the largest parallelism a job can ever be rescaled to."""
        if not 0 < max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
            raise ValueError(
                f"max parallelism must be between 1 and {UPPER_BOUND_MAX_PARALLELISM}, got {max_parallelism}"
            )
        return self._set(config_keys.MAX_PARALLELISM, max_parallelism)

    def get_max_parallelism(self) -> int:
        """The max parallelism that was set, -1 if it follows from the parallelism."""
        return self._configuration.get(config_keys.MAX_PARALLELISM)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between two periodic watermarks; 200 unless set.

        0 emits a watermark after every record, which suits tests and costs speed. (PyFlink emits none then.)
        """
        if interval < 0:
            raise ValueError(f"the auto watermark interval cannot be negative, got {interval} ms")
        return self._set(config_keys.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds between two periodic watermarks."""
        return self._configuration.get(config_keys.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between two latency markers of each source; 0 or less turns them off."""
        return self._set(config_keys.LATENCY_INTERVAL, max(interval, 0))

    def get_latency_tracking_interval(self) -> int:
        """Milliseconds between two latency markers; 0 if there are none."""
        return self._configuration.get(config_keys.LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Accepted without effect: a task is asked to end once."""
        return self._set(config_keys.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        """The value set by `set_task_cancellation_interval`."""
        return self._configuration.get(config_keys.TASK_CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Milliseconds that a source function may take to end when its job ends; 10 seconds unless set."""
        if timeout < 0:
            raise ValueError(f"the task cancellation timeout cannot be negative, got {timeout} ms")
        return self._set(config_keys.TASK_CANCELLATION_TIMEOUT, timeout)

    def get_task_cancellation_timeout(self) -> int:
        """The value set by `set_task_cancellation_timeout`."""
        return self._configuration.get(config_keys.TASK_CANCELLATION_TIMEOUT)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Give operators without `uid(...)` an id from their place in the program; the default."""
        return self._set(config_keys.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Require a `uid(...)` of every operator: without one, building the graph fails."""
        return self._set(config_keys.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """True if operators may go without `uid(...)`."""
        return self._configuration.get(config_keys.AUTO_GENERATE_UIDS)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Hand elements from function to function without copying them.

        Faster where elements are lists, dicts, rows or objects. Only for programs whose functions change nothing that
        they have emitted or been given: otherwise results may differ.
        """
        return self._set(config_keys.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copy elements between functions where they could be changed; the default."""
        return self._set(config_keys.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """True if elements are not copied between functions."""
        return self._configuration.get(config_keys.OBJECT_REUSE)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Compress the state files of checkpoints; they become smaller, and take more time to write."""
        return self._set(config_keys.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        """True if the state files of checkpoints are compressed."""
        return self._configuration.get(config_keys.SNAPSHOT_COMPRESSION)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Parameters that every function can read; values become text."""
        parameters = {key: str(value) for key, value in global_job_parameters_dict.items()}
        return self._set(config_keys.GLOBAL_JOB_PARAMETERS, parameters)

    def get_global_job_parameters(self) -> dict[str, str]:
        """The parameters that were set, as text."""
        return self._configuration.get_optional(config_keys.GLOBAL_JOB_PARAMETERS) or {}

    # What follows controls Java's serializers. Python values are pickled whatever is set; the settings are kept so that
    # programs which touch them run and read back what they wrote.

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Accepted without effect: there are no Java closures."""
        return self._set(config_keys.CLOSURE_CLEANER_LEVEL, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Accepted without effect: there are no Java closures."""
        return self._set(config_keys.CLOSURE_CLEANER_LEVEL, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """True unless `disable_closure_cleaner()` was called."""
        return self._configuration.get(config_keys.CLOSURE_CLEANER_LEVEL).upper() != "NONE"

    def enable_force_kryo(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """True if `enable_force_kryo()` was called."""
        return self._configuration.get(config_keys.FORCE_KRYO)

    def enable_force_avro(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """True if `enable_force_avro()` was called."""
        return self._configuration.get(config_keys.FORCE_AVRO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self._set(config_keys.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """True if `disable_generic_types()` was called."""
        return not self._configuration.get(config_keys.GENERIC_TYPES)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: there are no Kryo serializers."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Always empty: there are no Kryo serializers."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Always empty: there are no Java classes."""
        return []

    # What programs for Flink 1.x still call.

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> ExecutionConfig:
        """What a job does after a failure; the same as `env.set_restart_strategy(...)`."""
        self._configuration.add_all(Configuration.from_dict(restart_strategy_configuration.to_configuration()))
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy that was set; the fallback strategy if none was."""
        return RestartStrategies.from_configuration(self._configuration)

    def set_execution_mode(self, execution_mode: ExecutionMode) -> ExecutionConfig:
        """Accepted without effect: `env.set_runtime_mode(...)` chooses between streaming and batch."""
        return self._set(config_keys.EXECUTION_MODE, execution_mode.name)

    def get_execution_mode(self) -> ExecutionMode:
        """The value set by `set_execution_mode`."""
        return ExecutionMode[self._configuration.get(config_keys.EXECUTION_MODE)]

    def set_default_input_dependency_constraint(
        self, input_dependency_constraint: InputDependencyConstraint
    ) -> ExecutionConfig:
        """Accepted without effect: an operator starts with its first input."""
        return self._set(config_keys.INPUT_DEPENDENCY_CONSTRAINT, input_dependency_constraint.name)

    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        """The value set by `set_default_input_dependency_constraint`."""
        return InputDependencyConstraint[self._configuration.get(config_keys.INPUT_DEPENDENCY_CONSTRAINT)]

    def disable_auto_type_registration(self) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self

    def is_auto_type_registration_disabled(self) -> bool:
        """Always true: there is no Kryo to register types with."""
        return True

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self

    def register_kryo_type(self, type_class_name: str) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self

    def register_pojo_type(self, type_class_name: str) -> ExecutionConfig:
        """Accepted without effect: elements are pickled."""
        return self

    def get_registered_types_with_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: there are no Kryo serializers."""
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)

    def __repr__(self) -> str:
        return f"ExecutionConfig({self._configuration!r})"
