package penstock.benchmarks;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Orders and their payments, half of the records each, keyed by order: the input of both joins. */
final class Orders {

    static final long WITHIN_MS = 4_000;
    private static final long MEAN_DELAY_MS = 2_000;
    private static final long EVERY_MS = 10;
    private static final long A_BLOCK = 512;
    private static final long KEEPS_ONE_OF = 50;

    private Orders() {}

    static KeyedStream<Tuple2<Long, Long>, Long> orders(StreamExecutionEnvironment env, Setting setting) {
        return keyed(env, setting, "orders", number -> Tuple2.of(number, number * EVERY_MS));
    }

    /** They come as often as orders do, but those for a block of orders in reverse. */
    static KeyedStream<Tuple2<Long, Long>, Long> payments(StreamExecutionEnvironment env, Setting setting) {
        return keyed(
                env,
                setting,
                "payments",
                number ->
                        Tuple2.of(
                                number / A_BLOCK * A_BLOCK + A_BLOCK - 1 - number % A_BLOCK,
                                number * EVERY_MS + MEAN_DELAY_MS));
    }

    static boolean isKept(Tuple2<Long, Long> paid) {
        return paid.f0 % KEEPS_ONE_OF == 0;
    }

    private static KeyedStream<Tuple2<Long, Long>, Long> keyed(
            StreamExecutionEnvironment env,
            Setting setting,
            String name,
            MapFunction<Long, Tuple2<Long, Long>> function) {
        NumberSequenceSource source = new NumberSequenceSource(0, setting.records() / 2 - 1);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), name)
                .map(function)
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tuple2<Long, Long>>forMonotonousTimestamps()
                                .withTimestampAssigner((pair, before) -> pair.f1))
                .keyBy(pair -> pair.f0);
    }
}
