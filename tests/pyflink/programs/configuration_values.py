"""Configuration keeps types."""

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


config = Configuration()
config.set_string("text", "x")
config.set_integer("number", 5)
config.set_boolean("flag", True)
config.set_float("fraction", 0.5)
target = {}
config.add_all_to_dict(target)
print(sorted((key, repr(value)) for key, value in target.items()))
print(sorted(config.to_dict().items()))
print(config.get_string("number", ""), config.get_integer("number", 0), config.get_boolean("flag", False))
other = Configuration()
other.add_all(config, "prefix.")
print(sorted(other.key_set()))
print(config.contains_key("text"), config.remove_config("text"), config.contains_key("text"))
env.configure(config)
timeouts = Configuration()
timeouts.set_string("execution.buffer-timeout.interval", "1 min")
timeouts.set_string("parallelism.default", "3")
timeouts.set_string("pipeline.max-parallelism", "64")
timeouts.set_string("pipeline.auto-watermark-interval", "1 s")
timeouts.set_string("execution.checkpointing.interval", "2 s")
timeouts.set_string("pipeline.operator-chaining.enabled", "false")
env.configure(timeouts)
print(env.get_buffer_timeout(), env.get_parallelism(), env.get_max_parallelism())
print(env.get_config().get_auto_watermark_interval(), env.get_checkpoint_interval(), env.is_chaining_enabled())
