package penstock.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** From a topic to another, exactly once: parses, counts per key in ValueState, writes. */
final class KafkaToKafka implements Benchmark {

    private static final String SERVERS = System.getenv("BENCH_KAFKA_SERVERS");

    @Override
    public Supplier<List<Object>> run(StreamExecutionEnvironment env, Setting setting) throws Exception {
        String results = "results-" + UUID.randomUUID();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", SERVERS))) {
            admin.createTopics(List.of(new NewTopic(results, setting.parallelism(), (short) 1))).all().get();
        }
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(SERVERS)
                        .setTopics(topicOf(setting))
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setBounded(OffsetsInitializer.latest())
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        KafkaSink<String> sink =
                KafkaSink.<String>builder()
                        .setBootstrapServers(SERVERS)
                        .setRecordSerializer(
                                KafkaRecordSerializationSchema.builder()
                                        .setTopic(results)
                                        .setValueSerializationSchema(new SimpleStringSchema())
                                        .build())
                        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                        .setTransactionalIdPrefix("benchmark-" + UUID.randomUUID())
                        .build();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .map(KafkaToKafka::parse)
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(order -> order.f0)
                .process(new NumberOrders())
                .sinkTo(sink);
        env.execute();
        return () -> committed(results);
    }

    /** The name that benchmarks/kafka_to_kafka.py gives to the topic of an input. */
    private static String topicOf(Setting setting) {
        return "orders-" + setting.records() + "-p" + setting.parallelism() + "-" + setting.keys();
    }

    private static Tuple2<Long, Long> parse(String text) {
        int space = text.indexOf(' ');
        return Tuple2.of(Long.parseLong(text.substring(0, space)), Long.parseLong(text.substring(space + 1)));
    }

    private static List<Object> committed(String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", SERVERS);
        settings.put("isolation.level", "read_committed");
        List<Object> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions =
                    consumer.partitionsFor(topic).stream()
                            .map(each -> new TopicPartition(topic, each.partition()))
                            .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    values.add(each.value());
                }
            }
        }
        return values;
    }

    private static final class NumberOrders extends KeyedProcessFunction<Long, Tuple2<Long, Long>, String> {

        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple2<Long, Long> value, Context context, Collector<String> out)
                throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            out.collect(value.f0 + " " + now);
        }
    }
}
