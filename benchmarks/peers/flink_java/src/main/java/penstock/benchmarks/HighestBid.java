package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;

/** Nexmark's query 7: the highest bid of each 10 seconds; of two with the same price the later one. */
final class HighestBid implements CollectedBenchmark {

    private static final Duration WINDOW = Duration.ofSeconds(10);

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting).windowAll(TumblingEventTimeWindows.of(WINDOW)).reduce(HighestBid::higher);
    }

    private static Tuple4<Long, Long, Long, Long> higher(
            Tuple4<Long, Long, Long, Long> a, Tuple4<Long, Long, Long, Long> b) {
        int compared = Long.compare(a.f2, b.f2);
        return (compared != 0 ? compared : Long.compare(a.f3, b.f3)) > 0 ? a : b;
    }
}
