package penstock.benchmarks;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReadOnlyBroadcastState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;

/** Each user's payments above the limit that the rule of their category sets, held in broadcast state. */
final class BroadcastRules implements CollectedBenchmark {

    private static final long CATEGORIES = 50;
    private static final long AMOUNTS = 10_007;
    private static final TypeInformation<Tuple4<Long, Long, Long, Long>> PAYMENT =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG);
    private static final MapStateDescriptor<Long, Long> LIMITS =
            new MapStateDescriptor<>("limits", Types.LONG, Types.LONG);

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        long keys = setting.keys();
        KeyedStream<Tuple4<Long, Long, Long, Long>, Long> payments =
                Benchmark.numbers(env, setting)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Long>forMonotonousTimestamps()
                                        .withTimestampAssigner((number, before) -> number))
                        .map(n -> Tuple4.of(n * 7919 % keys, n % CATEGORIES, n * 6151 % AMOUNTS, n))
                        .returns(PAYMENT)
                        .keyBy(payment -> payment.f0);
        return payments.connect(env.fromData(rules()).broadcast(LIMITS)).process(new AboveLimit());
    }

    private static List<Tuple2<Long, Long>> rules() {
        List<Tuple2<Long, Long>> rules = new ArrayList<>();
        for (long category = 0; category < CATEGORIES; category++) {
            rules.add(Tuple2.of(category, AMOUNTS - 1 - category));
        }
        return rules;
    }

    /** Emits a user and how many payments above a limit they have made so far; what came too early waits for rules. */
    private static final class AboveLimit
            extends KeyedBroadcastProcessFunction<
                    Long, Tuple4<Long, Long, Long, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {

        private transient ValueState<Long> above;
        private transient ListState<Tuple4<Long, Long, Long, Long>> early;

        @Override
        public void open(OpenContext context) {
            above = getRuntimeContext().getState(new ValueStateDescriptor<>("above", Types.LONG));
            early = getRuntimeContext().getListState(new ListStateDescriptor<>("early", PAYMENT));
        }

        @Override
        public void processElement(
                Tuple4<Long, Long, Long, Long> payment, ReadOnlyContext context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long limit = context.getBroadcastState(LIMITS).get(payment.f1);
            if (limit == null) {
                early.add(payment);
                context.timerService().registerEventTimeTimer(payment.f3);
            } else if (payment.f2 > limit) {
                count(payment, out);
            }
        }

        @Override
        public void processBroadcastElement(
                Tuple2<Long, Long> rule, Context context, Collector<Tuple2<Long, Long>> out) throws Exception {
            context.getBroadcastState(LIMITS).put(rule.f0, rule.f1);
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            ReadOnlyBroadcastState<Long, Long> limits = context.getBroadcastState(LIMITS);
            List<Tuple4<Long, Long, Long, Long>> waiting = new ArrayList<>();
            early.get().forEach(waiting::add);
            early.clear();
            for (Tuple4<Long, Long, Long, Long> payment : waiting) {
                if (payment.f2 > limits.get(payment.f1)) {
                    count(payment, out);
                }
            }
        }

        private void count(Tuple4<Long, Long, Long, Long> payment, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long before = above.value();
            long now = before == null ? 1 : before + 1;
            above.update(now);
            out.collect(Tuple2.of(payment.f0, now));
        }
    }
}
