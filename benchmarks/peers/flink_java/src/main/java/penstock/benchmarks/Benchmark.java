package penstock.benchmarks;

import java.util.List;
import java.util.function.Supplier;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A program that is measured. */
interface Benchmark {

    /** Runs to the end; what came out of it is read afterwards, when the time has been taken. */
    Supplier<List<Object>> run(StreamExecutionEnvironment env, Setting setting) throws Exception;

    /** The same with an environment of its own for each job that it runs. */
    default Supplier<List<Object>> run(Cluster cluster, Setting setting) throws Exception {
        return run(cluster.environment(setting), setting);
    }

    /** From the results of a run to what must be the same in every run, where results depend on the clock. */
    default List<Object> comparable(List<Object> results) {
        return results;
    }

    /** The input of most benchmarks: 0, 1, 2 and so on. */
    static DataStream<Long> numbers(StreamExecutionEnvironment env, Setting setting) {
        return env.fromSource(
                new NumberSequenceSource(0, setting.records() - 1), WatermarkStrategy.noWatermarks(), "numbers");
    }

    static Benchmark named(String name) {
        return switch (name) {
            case "word_count" -> new WordCount();
            case "stateless_chain" -> new StatelessChain();
            case "session_windows" -> new SessionWindows();
            case "sliding_windows" -> new SlidingWindows();
            case "keyed_count" -> new KeyedCount();
            case "hot_key" -> new HotKey();
            case "keyed_timers" -> new KeyedTimers();
            case "connected_join" -> new ConnectedJoin();
            case "interval_join" -> new IntervalJoin();
            case "broadcast_rules" -> new BroadcastRules();
            case "wide_records" -> new WideRecords();
            case "small_jobs" -> new SmallJobs();
            case "kafka_to_kafka" -> new KafkaToKafka();
            case "files.text" -> new FileWordCount(FileWordCount.Format.TEXT);
            case "files.csv" -> new FileWordCount(FileWordCount.Format.CSV);
            case "files.json" -> new FileWordCount(FileWordCount.Format.JSON);
            case "files.parquet" -> new FileWordCount(FileWordCount.Format.PARQUET);
            case "nexmark.q0" -> (CollectedBenchmark) StatelessQueries::passThrough;
            case "nexmark.q1" -> (CollectedBenchmark) StatelessQueries::currencyConversion;
            case "nexmark.q2" -> (CollectedBenchmark) StatelessQueries::selection;
            case "nexmark.q5" -> new HotItems();
            case "nexmark.q7" -> new HighestBid();
            case "nexmark.q8" -> new NewSellers();
            case "nexmark.q11" -> new UserSessions();
            case "nexmark.q12" -> new ClockWindows();
            default -> throw new IllegalArgumentException("there is no benchmark " + name);
        };
    }
}
