package penstock.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/** Measures one benchmark, warm, in this JVM: its name, then the arguments of the Python programs. */
public final class Main {

    private static final long FIXED_COST_RECORDS = 1_000;
    private static final double NANOS = 1e9;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Benchmark benchmark = Benchmark.named(arguments[0]);
        Setting setting = Setting.parse(arguments, 1);
        try (Cluster cluster = new Cluster(setting.parallelism())) {
            System.out.println("BENCHMARK RESULT " + measure(cluster, benchmark, setting));
        }
        System.exit(0); // Threads of the cluster may linger.
    }

    /** A tenth first, so that everything is loaded and compiled; then, as often as asked, almost nothing and all. */
    private static String measure(Cluster cluster, Benchmark benchmark, Setting setting) throws Exception {
        long aTenth = Math.max(setting.records() / 10, FIXED_COST_RECORDS);
        benchmark.run(cluster, setting.withRecords(aTenth)).get();
        List<String> runs = new ArrayList<>();
        for (int turn = 0; turn < setting.repeats(); turn++) {
            runs.add(measureOnce(cluster, benchmark, setting));
        }
        return "[" + String.join(", ", runs) + "]";
    }

    private static String measureOnce(Cluster cluster, Benchmark benchmark, Setting setting) throws Exception {
        long started = System.nanoTime();
        Supplier<List<Object>> nothing = benchmark.run(cluster, setting.withRecords(FIXED_COST_RECORDS));
        double fixedSeconds = (System.nanoTime() - started) / NANOS;
        nothing.get();

        double cpuBefore = cpuSeconds();
        started = System.nanoTime();
        Supplier<List<Object>> ended = benchmark.run(cluster, setting);
        double seconds = (System.nanoTime() - started) / NANOS;
        double cpuSeconds = cpuSeconds() - cpuBefore;
        List<Object> results = ended.get();
        return String.format(
                Locale.ROOT,
                "{\"records\": %d, \"seconds\": %.6f, \"fixed_seconds\": %.6f, \"cpu_seconds\": %.2f, "
                        + "\"results\": %d, \"digest\": \"%s\"}",
                setting.records(),
                seconds,
                fixedSeconds,
                cpuSeconds,
                results.size(),
                Results.digest(benchmark.comparable(results)));
    }

    private static double cpuSeconds() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / NANOS;
    }
}
