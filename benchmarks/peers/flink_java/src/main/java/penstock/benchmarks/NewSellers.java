package penstock.benchmarks;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Nexmark's query 8: people who opened an auction within the same 10 seconds in which they came. */
final class NewSellers implements CollectedBenchmark {

    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final String NO_NAME = "";

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        DataStream<Long> events = Events.numbers(env, setting);
        DataStream<Tuple2<Long, String>> people =
                events.filter(Events::isPerson)
                        .map(Events::person)
                        .returns(Types.TUPLE(Types.LONG, Types.STRING));
        DataStream<Tuple2<Long, String>> sellers =
                events.filter(Events::isAuction)
                        .map(number -> Tuple2.of(Events.seller(number), NO_NAME))
                        .returns(Types.TUPLE(Types.LONG, Types.STRING));
        return people.union(sellers)
                .keyBy(pair -> pair.f0)
                .window(TumblingEventTimeWindows.of(WINDOW))
                .process(new WhoIsBoth());
    }

    /** Person, name and the window's start, where a window has the person and an auction of theirs. */
    private static final class WhoIsBoth
            extends ProcessWindowFunction<Tuple2<Long, String>, Tuple3<Long, String, Long>, Long, TimeWindow> {

        @Override
        public void process(
                Long key,
                Context context,
                Iterable<Tuple2<Long, String>> elements,
                Collector<Tuple3<Long, String, Long>> out) {
            Set<String> names = new HashSet<>();
            elements.forEach(element -> names.add(element.f1));
            if (names.remove(NO_NAME)) {
                names.forEach(name -> out.collect(Tuple3.of(key, name, context.window().getStart())));
            }
        }
    }
}
