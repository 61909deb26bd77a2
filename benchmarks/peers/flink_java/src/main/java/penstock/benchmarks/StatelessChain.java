package penstock.benchmarks;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** map, filter, flatMap, map: no keys, no time. The last filter keeps few records: collecting them costs little. */
final class StatelessChain implements CollectedBenchmark {

    private static final long KEEPS_ONE_OF = 1_000;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Benchmark.numbers(env, setting)
                .map(number -> number * 3 + 1)
                .filter(number -> number % 2 == 1)
                .flatMap(
                        (Long number, Collector<Long> out) -> {
                            out.collect(number / 2);
                            out.collect(number - number / 2);
                        })
                .returns(Types.LONG)
                .map(number -> Tuple2.of(number, number % 2 == 0 ? "even" : "odd"))
                .returns(Types.TUPLE(Types.LONG, Types.STRING))
                .filter(pair -> pair.f0 % KEEPS_ONE_OF == 0);
    }
}
