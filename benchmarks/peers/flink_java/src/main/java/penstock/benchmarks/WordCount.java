package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;

/** Counts words in event-time windows of 10 seconds; 10 words come every millisecond. */
final class WordCount implements CollectedBenchmark {

    private static final long WORDS_A_MS = 10;
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final int TEXT_WORDS = 9_973;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        String[] text = text(setting.keys(), setting.hasSkew());
        return Benchmark.numbers(env, setting)
                .assignTimestampsAndWatermarks(times())
                .map(number -> Tuple2.of(text[(int) (number % text.length)], 1L))
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(pair -> pair.f0)
                .window(TumblingEventTimeWindows.of(WINDOW))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1));
    }

    static WatermarkStrategy<Long> times() {
        return WatermarkStrategy.<Long>forMonotonousTimestamps()
                .withTimestampAssigner((number, before) -> number / WORDS_A_MS);
    }

    /** A text that repeats; skewed: 80 % of it are the first fifth of the words. */
    static String[] text(long keys, boolean hasSkew) {
        long few = Math.max(keys / 5, 1);
        long many = Math.max(keys - few, 1);
        String[] text = new String[TEXT_WORDS];
        for (int place = 0; place < TEXT_WORDS; place++) {
            long mixed = place * 2_654_435_761L >> 7;
            long key = !hasSkew ? mixed % keys : place % 5 != 0 ? mixed % few : keys - 1 - mixed % many;
            text[place] = "word-" + key;
        }
        return text;
    }
}
