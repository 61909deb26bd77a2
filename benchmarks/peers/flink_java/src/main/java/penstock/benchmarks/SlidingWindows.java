package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;

/** Readings per sensor in event-time windows of a minute that begin every 10 seconds: how many, and their sum. */
final class SlidingWindows implements CollectedBenchmark {

    private static final Duration SIZE = Duration.ofSeconds(60);
    private static final Duration SLIDE = Duration.ofSeconds(10);
    private static final long LARGEST_VALUE = 100;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        String[] sensors = WordCount.text(setting.keys(), setting.hasSkew());
        return Benchmark.numbers(env, setting)
                .assignTimestampsAndWatermarks(WordCount.times())
                .map(number -> Tuple2.of(sensors[(int) (number % sensors.length)], number % LARGEST_VALUE))
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(reading -> reading.f0)
                .window(SlidingEventTimeWindows.of(SIZE, SLIDE))
                .aggregate(new CountAndSum());
    }

    /** The accumulator is sensor, count and sum; it is the result, too. */
    private static final class CountAndSum
            implements AggregateFunction<Tuple2<String, Long>, Tuple3<String, Long, Long>, Tuple3<String, Long, Long>> {

        @Override
        public Tuple3<String, Long, Long> createAccumulator() {
            return Tuple3.of("", 0L, 0L);
        }

        @Override
        public Tuple3<String, Long, Long> add(Tuple2<String, Long> value, Tuple3<String, Long, Long> accumulator) {
            return Tuple3.of(value.f0, accumulator.f1 + 1, accumulator.f2 + value.f1);
        }

        @Override
        public Tuple3<String, Long, Long> getResult(Tuple3<String, Long, Long> accumulator) {
            return accumulator;
        }

        @Override
        public Tuple3<String, Long, Long> merge(Tuple3<String, Long, Long> a, Tuple3<String, Long, Long> b) {
            return Tuple3.of(a.f0.isEmpty() ? b.f0 : a.f0, a.f1 + b.f1, a.f2 + b.f2);
        }
    }
}
