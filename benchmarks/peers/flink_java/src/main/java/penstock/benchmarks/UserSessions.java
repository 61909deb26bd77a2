package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;

/** Nexmark's query 11: each person's bids without a pause of 10 seconds. One person in ten is shown. */
final class UserSessions implements CollectedBenchmark {

    private static final Duration GAP = Duration.ofSeconds(10);
    private static final long SHOWS_ONE_OF = 10;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Events.bids(env, setting)
                .keyBy(bid -> bid.f1)
                .window(EventTimeSessionWindows.withGap(GAP))
                .aggregate(new BidCounts.CountElements(), new BidCounts.WithKeyAndWindow())
                .filter(session -> session.f0 % SHOWS_ONE_OF == 1);
    }
}
