package penstock.benchmarks;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** What queries that count bids in windows have in common. */
final class BidCounts {

    private BidCounts() {}

    static final class CountElements implements AggregateFunction<Tuple4<Long, Long, Long, Long>, Long, Long> {

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple4<Long, Long, Long, Long> bid, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    /** Key, count, and the window's start and end in milliseconds. */
    static final class WithKeyAndWindow
            extends ProcessWindowFunction<Long, Tuple4<Long, Long, Long, Long>, Long, TimeWindow> {

        @Override
        public void process(
                Long key, Context context, Iterable<Long> counts, Collector<Tuple4<Long, Long, Long, Long>> out) {
            for (Long count : counts) {
                out.collect(Tuple4.of(key, count, context.window().getStart(), context.window().getEnd()));
            }
        }
    }
}
