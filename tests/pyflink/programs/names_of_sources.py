"""Names as PyFlink shows them."""

import json

from pyflink.common import WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


named = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers")
print(named.get_name())
collection = env.from_collection([1])
print(collection.get_name())
print(collection.name("mine").get_name())
mapped = collection.map(lambda n: n)
print(mapped.get_name(), mapped.name("my map").get_name(), collection.filter(lambda n: True).get_name())
named.print()
print([node["type"] for node in json.loads(env.get_execution_plan())["nodes"] if "Source" in node["type"]])
