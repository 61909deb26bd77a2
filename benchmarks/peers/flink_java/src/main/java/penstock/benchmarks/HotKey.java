package penstock.benchmarks;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Counts per key in ValueState where nine of ten records have the same key; emits each hundredth count. */
final class HotKey implements CollectedBenchmark {

    private static final long SHOWS_ONE_COUNT_OF = 100;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        long keys = setting.keys();
        return Benchmark.numbers(env, setting)
                .map(number -> Tuple2.of(number % 10 != 0 ? 0 : number * 7919 % keys, number))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(pair -> pair.f0)
                .process(new CountHundreds());
    }

    private static final class CountHundreds
            extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Tuple2<Long, Long>> {

        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple2<Long, Long> value, Context context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            if (now % SHOWS_ONE_COUNT_OF == 0) {
                out.collect(Tuple2.of(value.f0, now));
            }
        }
    }
}
