"""The settings of an environment that are nothing but configuration, as methods with Flink's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common import config_keys as keys
from penstock.common.config_checks import check_keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import InvalidProgramError
from penstock.common.execution_config import ExecutionConfig
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.time import to_milliseconds
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from penstock.datastream.streams.operator_settings import check_parallelism
from penstock.datastream.time_characteristic import TimeCharacteristic

if TYPE_CHECKING:
    from typing_extensions import Self

_CHANGELOG_KEY = "state.changelog.enabled"


class EnvironmentSettings:
    """Every method reads or changes the configuration; those that change it return the environment."""

    _configuration: Configuration

    def get_configuration(self) -> Configuration:
        """The live configuration: a change to it takes effect in this environment."""
        return self._configuration

    def get_config(self) -> ExecutionConfig:
        """The settings of the job as methods; a live view of the configuration.

        >>> env.get_config().enable_object_reuse().is_object_reuse_enabled()
        True
        """
        return ExecutionConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Add these settings to the configuration; they replace those with the same keys.

        >>> from penstock.common import Configuration
        >>> env.configure(Configuration().set_string("pipeline.max-parallelism", "720"))
        >>> env.get_max_parallelism()
        720
        """
        self._configuration.add_all(configuration)
        check_keys(self._configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """How many subtasks each operator has, unless it sets its own.

        >>> env.set_parallelism(2).from_collection(["a"]).map(str.upper).transformation.parallelism
        2
        """
        self._configuration.set(keys.PARALLELISM, check_parallelism(parallelism, "set_parallelism"))
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups, and so the largest parallelism that the job's state can ever be spread over.

        It cannot change once a savepoint has been taken. Unless set, it follows from the parallelism: at least
        128.

        >>> env.set_max_parallelism(720).get_max_parallelism()
        720
        """
        self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The max parallelism that was set; -1 if it follows from the parallelism."""
        return self.get_config().get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Run the job as STREAMING, which is the default, as BATCH, or choose by its sources: AUTOMATIC.

        BATCH is for bounded sources only; AUTOMATIC is BATCH if all sources are bounded. In BATCH mode keyed operators
        get their input key by key and emit final results only.

        >>> from penstock.datastream import RuntimeExecutionMode
        >>> from penstock.datastream import StreamExecutionEnvironment
        >>> batch = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> pairs = batch.from_collection([("a", 1), ("a", 2)])
        >>> list(pairs.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
        [('a', 3)]
        """
        self._configuration.set(keys.RUNTIME_MODE, execution_mode.name)
        return self

    def runtime_mode(self) -> RuntimeExecutionMode:
        """The runtime mode that was set; STREAMING unless one was."""
        name = self._configuration.get(keys.RUNTIME_MODE).upper()
        try:
            return RuntimeExecutionMode[name]
        except KeyError:
            known = ", ".join(mode.name for mode in RuntimeExecutionMode)
            raise InvalidProgramError(f"{keys.RUNTIME_MODE.key}: {name!r} is not one of {known}") from None

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Whether `time_window` makes windows of event or processing time; nothing else depends on it."""
        self._configuration.set(keys.TIME_CHARACTERISTIC, characteristic.value)
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The time characteristic that was set; event time unless one was, as in Flink."""
        return TimeCharacteristic(self._configuration.get(keys.TIME_CHARACTERISTIC))

    def uses_event_time_windows(self) -> bool:
        """True if `time_window` makes event-time windows: only when event time was asked for by name."""
        asked = self._configuration.get_optional(keys.TIME_CHARACTERISTIC)
        return asked is not None and TimeCharacteristic(asked) is not TimeCharacteristic.PROCESSING_TIME

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """The least time between the starts of two epochs, in milliseconds: the longest that a record waits for one.

        0 starts an epoch as soon as the last one is done; -1 waits for 100 ms. Unless set, a job pauses for about as
        long as the last epoch took, but epochs start no later than 5 ms after each other. A longer timeout costs less
        CPU time where few records come.

        >>> env.set_buffer_timeout(50).get_buffer_timeout()
        50
        """
        if timeout_millis < -1:
            raise ValueError(f"the buffer timeout must be -1 or more, got {timeout_millis}")
        self._configuration.set_integer(keys.BUFFER_TIMEOUT.key, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """The buffer timeout in milliseconds; -1 if it was turned off, 100 if it was not set."""
        is_off = self._configuration.get_string(keys.BUFFER_TIMEOUT.key, "").strip() == "-1"
        return -1 if is_off else self._configuration.get(keys.BUFFER_TIMEOUT)

    def disable_operator_chaining(self) -> Self:
        """Run every operator by itself. For measurements; it makes jobs slower."""
        self._configuration.set(keys.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """True unless `disable_operator_chaining` was called, or configured."""
        return self._configuration.get(keys.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """The setting of that name, which has no effect: operators are chained by Flink's other rules alone."""
        return self._configuration.get(keys.CHAIN_DIFFERENT_MAX_PARALLELISM)

    # --- checkpoints, state, restarts --------------------------------------------------------------------------------

    def enable_checkpointing(self, interval: int | None = None, mode: CheckpointingMode | None = None) -> Self:
        """Take a checkpoint every `interval` milliseconds.

        A job without end then also restarts after a failure, with a growing delay as in Flink, and gives up when it
        fails again and again at the same record; docs/reliability.md has the rules. Where checkpoints go is set by
        `execution.checkpointing.dir`; without it they are gone when the job ends.

        >>> env.enable_checkpointing(10_000).get_checkpoint_interval()
        10000
        """
        if interval is not None:
            self._configuration.set(keys.CHECKPOINT_INTERVAL, to_milliseconds(interval))
        if mode is not None:
            self.get_checkpoint_config().set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint settings as methods; a live view of the configuration."""
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between the starts of two checkpoints; -1 if checkpoints are off."""
        interval_ms = self._configuration.get_optional(keys.CHECKPOINT_INTERVAL)
        return -1 if interval_ms is None else interval_ms

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE or AT_LEAST_ONCE; see `CheckpointConfig.get_checkpointing_mode`."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The newer name of `get_checkpointing_mode`."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Where savepoints go when the command that asks for one names no folder.

        >>> env.set_default_savepoint_directory("/data/savepoints").get_default_savepoint_directory()
        '/data/savepoints'
        """
        self._configuration.set(keys.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go by default; None if no folder was set."""
        return self._configuration.get_optional(keys.SAVEPOINT_DIR)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """True if unaligned checkpoints were asked for; epochs have nothing to align, so nothing changes."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """True if unaligned checkpoints were forced; that has no effect."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Accepted without effect: every checkpoint writes only what changed anyway."""
        self._configuration.set_boolean(_CHANGELOG_KEY, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """The value set by `enable_changelog_state_backend`; None if it was not called."""
        return self._configuration.get_boolean(_CHANGELOG_KEY, False) if _CHANGELOG_KEY in self._configuration else None

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Where keyed state is kept while the job runs: in memory, which is the default, or on local disk.

        >>> from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend
        >>> _ = env.set_state_backend(EmbeddedRocksDBStateBackend())
        >>> type(env.get_state_backend()).__name__
        'EmbeddedRocksDBStateBackend'
        """
        self._configuration.add_all(Configuration.from_dict(state_backend.configuration()))
        return self

    def get_state_backend(self) -> StateBackend | None:
        """The state backend that was set; None if none was."""
        match self._configuration.get_optional(keys.STATE_BACKEND):
            case None:
                return None
            case "hashmap" | "filesystem" | "jobmanager":
                return HashMapStateBackend()
        return EmbeddedRocksDBStateBackend()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """What the job does after a failure.

        >>> from penstock.common import RestartStrategies
        >>> _ = env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))  # three times, a second apart
        """
        self._configuration.add_all(Configuration.from_dict(restart_strategy_configuration.to_configuration()))
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy that was set; the fallback strategy if none was."""
        return self.get_config().get_restart_strategy()

    # Flink 1.x: there is no Kryo here to register types with.

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""

    def register_type(self, type_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""
