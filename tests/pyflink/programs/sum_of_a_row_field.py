"""sum by name keeps the other fields."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

row_type = Types.ROW_NAMED(["word", "vc"], [Types.STRING(), Types.INT()])
rows = env.from_collection([{"word": "a", "vc": 1}, {"word": "a", "vc": 2}], row_type)
rows.key_by(lambda row: row.word).sum("vc").print()
env.execute()
