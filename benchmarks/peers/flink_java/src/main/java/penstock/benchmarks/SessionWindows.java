package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;

/** Sessions in event time: each user comes five times, a second apart, and then never again. */
final class SessionWindows implements CollectedBenchmark {

    private static final long USERS_AT_A_TIME = 1_000;
    private static final long VISITS = 5;
    private static final Duration GAP = Duration.ofSeconds(3);
    private static final long KEEPS_ONE_OF = 50;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Benchmark.numbers(env, setting)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Long>forMonotonousTimestamps()
                                .withTimestampAssigner((number, before) -> number))
                .map(number -> Tuple2.of(userOf(number), 1L))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(visit -> visit.f0)
                .window(EventTimeSessionWindows.withGap(GAP))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1))
                .filter(session -> session.f0 % KEEPS_ONE_OF == 0);
    }

    /** A thousand users take turns, and after five rounds others come. */
    private static long userOf(long number) {
        return number / (USERS_AT_A_TIME * VISITS) * USERS_AT_A_TIME + number % USERS_AT_A_TIME;
    }
}
