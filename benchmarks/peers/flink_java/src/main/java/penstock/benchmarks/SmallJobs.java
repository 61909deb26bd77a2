package penstock.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/** Many small jobs at the same time, which wait for slots: each adds up a thousand numbers by key. */
final class SmallJobs implements Benchmark {

    private static final long RECORDS_A_JOB = 1_000;
    private static final long KEYS = 10;
    private static final int MOST_AT_ONCE = 100;

    @Override
    public Supplier<List<Object>> run(StreamExecutionEnvironment env, Setting setting) throws Exception {
        throw new UnsupportedOperationException("needs an environment for each job");
    }

    @Override
    public Supplier<List<Object>> run(Cluster cluster, Setting setting) throws Exception {
        List<Object> results = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(MOST_AT_ONCE);
        try {
            List<Future<List<Object>>> jobs = new ArrayList<>();
            for (long job = 0; job < setting.records() / RECORDS_A_JOB; job++) {
                long first = job * RECORDS_A_JOB;
                jobs.add(pool.submit(() -> runOne(cluster.environment(setting), first)));
            }
            for (Future<List<Object>> job : jobs) {
                results.addAll(job.get());
            }
        } finally {
            pool.shutdown();
        }
        return () -> results;
    }

    private static List<Object> runOne(StreamExecutionEnvironment env, long first) throws Exception {
        env.setParallelism(1);
        DataStream<Tuple3<Long, Long, Long>> sums =
                env.fromSource(
                                new NumberSequenceSource(first, first + RECORDS_A_JOB - 1),
                                WatermarkStrategy.noWatermarks(),
                                "numbers")
                        .map(number -> Tuple3.of(number % KEYS, 1L, number))
                        .returns(Types.TUPLE(Types.LONG, Types.LONG, Types.LONG))
                        .keyBy(each -> each.f0)
                        .reduce((a, b) -> Tuple3.of(a.f0, a.f1 + b.f1, a.f2 + b.f2))
                        .filter(each -> each.f1 == RECORDS_A_JOB / KEYS);
        List<Object> results = new ArrayList<>();
        try (CloseableIterator<Tuple3<Long, Long, Long>> found = sums.executeAndCollect()) {
            found.forEachRemaining(results::add);
        }
        return results;
    }
}
