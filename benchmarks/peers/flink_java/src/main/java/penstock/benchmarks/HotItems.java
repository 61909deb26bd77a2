package penstock.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Nexmark's query 5: in windows of 10 seconds that begin every 2, the auctions with the most bids. */
final class HotItems implements CollectedBenchmark {

    private static final Duration SIZE = Duration.ofSeconds(10);
    private static final Duration SLIDE = Duration.ofSeconds(2);

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting)
                .keyBy(bid -> bid.f0)
                .window(SlidingEventTimeWindows.of(SIZE, SLIDE))
                .aggregate(new BidCounts.CountElements(), new BidCounts.WithKeyAndWindow())
                // The counts of one window all have its last millisecond as their time.
                .windowAll(TumblingEventTimeWindows.of(SLIDE))
                .process(new Hottest());
    }

    /** All auctions that share the highest count. */
    private static final class Hottest
            extends ProcessAllWindowFunction<
                    Tuple4<Long, Long, Long, Long>, Tuple4<Long, Long, Long, Long>, TimeWindow> {

        @Override
        public void process(
                Context context,
                Iterable<Tuple4<Long, Long, Long, Long>> elements,
                Collector<Tuple4<Long, Long, Long, Long>> out) {
            List<Tuple4<Long, Long, Long, Long>> counts = new ArrayList<>();
            elements.forEach(counts::add);
            long highest = counts.stream().mapToLong(counted -> counted.f1).max().orElseThrow();
            counts.stream().filter(counted -> counted.f1 == highest).forEach(out::collect);
        }
    }
}
