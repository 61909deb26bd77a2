package penstock.benchmarks;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Baskets that expire: items are counted in ValueState, and an event-time timer emits the count and forgets it. */
final class KeyedTimers implements CollectedBenchmark {

    private static final long ITEMS = 4;
    private static final long ITEMS_A_MS = 10;
    private static final long PATIENCE_MS = 1_000;
    private static final long KEEPS_ONE_OF = 100;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        long keys = setting.keys();
        return Benchmark.numbers(env, setting)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Long>forMonotonousTimestamps()
                                .withTimestampAssigner((number, before) -> number / ITEMS_A_MS))
                .map(number -> item(number, keys))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(item -> item.f0)
                .process(new CountUntilExpiry())
                .filter(basket -> basket.f0 % KEEPS_ONE_OF == 0);
    }

    /** Basket and its expiry: `keys` baskets get items in turn, and then others come. */
    private static Tuple2<Long, Long> item(long number, long keys) {
        long aRound = keys * ITEMS;
        long turn = number / aRound;
        return Tuple2.of(turn * keys + number % keys, (turn + 1) * aRound / ITEMS_A_MS + PATIENCE_MS);
    }

    private static final class CountUntilExpiry
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
            count.update(before == null ? 1 : before + 1);
            context.timerService().registerEventTimeTimer(value.f1);
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long found = count.value();
            count.clear();
            out.collect(Tuple2.of(context.getCurrentKey(), found));
        }
    }
}
