"""A program as PyFlink's users write it: rows to Kafka in one format by one connector, and back by another one.

python pyflink_kafka_program.py SERVERS TOPIC json|csv|avro sink|producer source|consumer
"""

import sys

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.serialization import JsonRowDeserializationSchema, JsonRowSerializationSchema
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors import DeliveryGuarantee, FlinkKafkaConsumer, FlinkKafkaProducer
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from pyflink.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

ROWS = [(1, "to"), (2, "be, or"), (3, "not")]
TYPE = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
AVRO = """{"type": "record", "name": "Word",
           "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}"""


def schemas(name):
    if name == "json":
        serializer = JsonRowSerializationSchema.builder().with_type_info(TYPE).build()
        return serializer, JsonRowDeserializationSchema.builder().type_info(TYPE).build()
    if name == "csv":
        return CsvRowSerializationSchema.Builder(TYPE).build(), CsvRowDeserializationSchema.Builder(TYPE).build()
    return AvroRowSerializationSchema(avro_schema_string=AVRO), AvroRowDeserializationSchema(avro_schema_string=AVRO)


def write(env, servers, topic, schema, connector):
    # As in many programs, the collection has no names of fields.
    stream = env.from_collection(ROWS, type_info=Types.ROW([Types.INT(), Types.STRING()]))
    if connector == "producer":
        config = {"bootstrap.servers": servers, "group.id": "test_group"}
        stream.add_sink(FlinkKafkaProducer(topic=topic, serialization_schema=schema, producer_config=config))
    else:
        serializer = (
            KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(schema).build()
        )
        stream.sink_to(
            KafkaSink.builder()
            .set_bootstrap_servers(servers)
            .set_record_serializer(serializer)
            .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .build()
        )
    env.execute("write")


def read(env, servers, topic, schema, connector):
    if connector == "consumer":
        consumer = FlinkKafkaConsumer(topic, schema, {"bootstrap.servers": servers, "group.id": "test_group"})
        consumer.set_start_from_earliest()
        return env.add_source(consumer).name("kafka")
    source = (
        KafkaSource.builder()
        .set_properties({"bootstrap.servers": servers, "group.id": "test_group"})
        .set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(schema)
        .build()
    )
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")


def main(servers, topic, name, writer, reader):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.add_jars("file:///opt/flink/lib/flink-sql-connector-kafka.jar")
    serializer, deserializer = schemas(name)
    write(env, servers, topic, serializer, writer)
    rows = read(env, servers, topic, deserializer, reader)
    # The topic never ends, so the job is cancelled when all are there.
    with rows.map(lambda row: f"{row.id}={row['name']}", Types.STRING()).execute_and_collect() as results:
        for _, line in zip(ROWS, results):  # noqa: B905 - it would wait for one more
            print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
