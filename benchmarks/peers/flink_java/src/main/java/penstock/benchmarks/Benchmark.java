package penstock.benchmarks;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A program that is measured. */
interface Benchmark {

    DataStream<?> build(StreamExecutionEnvironment env, Setting setting);

    /** The input of all benchmarks: 0, 1, 2 and so on. */
    static DataStream<Long> numbers(StreamExecutionEnvironment env, Setting setting) {
        return env.fromSource(
                new NumberSequenceSource(0, setting.records() - 1), WatermarkStrategy.noWatermarks(), "numbers");
    }

    static Benchmark named(String name) {
        return switch (name) {
            case "word_count" -> new WordCount();
            case "keyed_count" -> new KeyedCount();
            case "session_windows" -> new SessionWindows();
            case "sliding_windows" -> new SlidingWindows();
            case "keyed_timers" -> new KeyedTimers();
            case "stateless_chain" -> new StatelessChain();
            default -> throw new IllegalArgumentException("there is no benchmark " + name);
        };
    }
}
