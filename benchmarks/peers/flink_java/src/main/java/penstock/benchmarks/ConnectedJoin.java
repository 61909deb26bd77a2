package penstock.benchmarks;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/** Orders and their payments, which must come within four seconds: joined by hand, in state. */
final class ConnectedJoin implements CollectedBenchmark {

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Orders.orders(env, setting)
                .connect(Orders.payments(env, setting))
                .process(new JoinPayments())
                .filter(Orders::isKept);
    }

    /** Emits an order and how long its payment took. Each side is kept until nothing can match it any more. */
    private static final class JoinPayments
            extends KeyedCoProcessFunction<Long, Tuple2<Long, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {

        private transient ValueState<Long> ordered;
        private transient ValueState<Long> paid;

        @Override
        public void open(OpenContext context) {
            ordered = getRuntimeContext().getState(new ValueStateDescriptor<>("ordered", Types.LONG));
            paid = getRuntimeContext().getState(new ValueStateDescriptor<>("paid", Types.LONG));
        }

        @Override
        public void processElement1(Tuple2<Long, Long> value, Context context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long found = paid.value();
            if (found == null) {
                ordered.update(value.f1);
                context.timerService().registerEventTimeTimer(value.f1 + Orders.WITHIN_MS);
            } else {
                emit(value.f0, found - value.f1, out);
            }
        }

        @Override
        public void processElement2(Tuple2<Long, Long> value, Context context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long found = ordered.value();
            if (found == null) {
                paid.update(value.f1);
                context.timerService().registerEventTimeTimer(value.f1);
            } else {
                emit(value.f0, value.f1 - found, out);
            }
        }

        private void emit(long order, long delay, Collector<Tuple2<Long, Long>> out) {
            if (delay >= 0 && delay <= Orders.WITHIN_MS) {
                out.collect(Tuple2.of(order, delay));
            }
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Tuple2<Long, Long>> out) {
            ordered.clear();
            paid.clear();
        }
    }
}
