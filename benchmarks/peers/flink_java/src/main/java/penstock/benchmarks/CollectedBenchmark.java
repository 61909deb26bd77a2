package penstock.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/** A program whose results come back to the client. */
interface CollectedBenchmark extends Benchmark {

    DataStream<?> build(StreamExecutionEnvironment env, Setting setting);

    @Override
    default Supplier<List<Object>> run(StreamExecutionEnvironment env, Setting setting) throws Exception {
        List<Object> results = new ArrayList<>();
        try (CloseableIterator<?> found = build(env, setting).executeAndCollect()) {
            found.forEachRemaining(results::add);
        }
        return () -> results;
    }
}
