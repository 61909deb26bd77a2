package penstock.benchmarks;

import java.time.Duration;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.util.Collector;

/** Orders and their payments as in ConnectedJoin, with Flink's interval join. */
final class IntervalJoin implements CollectedBenchmark {

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        return Orders.orders(env, setting)
                .intervalJoin(Orders.payments(env, setting))
                .between(Duration.ZERO, Duration.ofMillis(Orders.WITHIN_MS))
                .process(new Delay())
                .filter(Orders::isKept);
    }

    private static final class Delay
            extends ProcessJoinFunction<Tuple2<Long, Long>, Tuple2<Long, Long>, Tuple2<Long, Long>> {

        @Override
        public void processElement(
                Tuple2<Long, Long> order,
                Tuple2<Long, Long> payment,
                Context context,
                Collector<Tuple2<Long, Long>> out) {
            out.collect(Tuple2.of(order.f0, payment.f1 - order.f1));
        }
    }
}
