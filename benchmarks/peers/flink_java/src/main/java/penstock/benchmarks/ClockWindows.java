package penstock.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.triggers.TriggerResult;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;

/** Nexmark's query 12: how many bids each person makes in 10 seconds of the machine's clock. */
final class ClockWindows implements CollectedBenchmark {

    private static final Duration WINDOW = Duration.ofSeconds(10);

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting)
                .map(bid -> Tuple2.of(bid.f1, 1L))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(pair -> pair.f0)
                .window(TumblingProcessingTimeWindows.of(WINDOW))
                .trigger(new AtTheEndToo())
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1));
    }

    /** The bids of each person over all windows: where a window ends depends on the clock. */
    @Override
    public List<Object> comparable(List<Object> results) {
        Map<Long, Long> totals = new TreeMap<>();
        for (Object result : results) {
            Tuple2<Long, Long> pair = (Tuple2<Long, Long>) result;
            totals.merge(pair.f0, pair.f1, Long::sum);
        }
        List<Object> summed = new ArrayList<>();
        totals.forEach((bidder, count) -> summed.add(Tuple2.of(bidder, count)));
        return summed;
    }

    /** Fires when the window ends, and when the input does: then Flink forgets windows that are still open. */
    private static final class AtTheEndToo extends Trigger<Object, TimeWindow> {

        @Override
        public TriggerResult onElement(Object element, long timestamp, TimeWindow window, TriggerContext context) {
            context.registerProcessingTimeTimer(window.maxTimestamp());
            context.registerEventTimeTimer(Long.MAX_VALUE);
            return TriggerResult.CONTINUE;
        }

        @Override
        public TriggerResult onProcessingTime(long time, TimeWindow window, TriggerContext context) {
            return TriggerResult.FIRE_AND_PURGE;
        }

        @Override
        public TriggerResult onEventTime(long time, TimeWindow window, TriggerContext context) {
            return TriggerResult.FIRE_AND_PURGE;
        }

        @Override
        public void clear(TimeWindow window, TriggerContext context) {
            context.deleteProcessingTimeTimer(window.maxTimestamp());
            context.deleteEventTimeTimer(Long.MAX_VALUE);
        }
    }
}
