package penstock.benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Counts the words that come from a socket, per word, in ValueState; every count is printed. */
public final class Latency {

    private static final String POISON = "poison:";

    private Latency() {}

    /** `--port=N --parallelism=N --config=KEY=VALUE ...`, as benchmarks/latency_job.py. */
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        int port = 0;
        int parallelism = 1;
        for (String argument : arguments) {
            String value = argument.substring(argument.indexOf('=') + 1);
            switch (argument.substring(0, argument.indexOf('='))) {
                case "--port" -> port = Integer.parseInt(value);
                case "--parallelism" -> parallelism = Integer.parseInt(value);
                case "--config" ->
                        configuration.setString(
                                value.substring(0, value.indexOf('=')), value.substring(value.indexOf('=') + 1));
                default -> throw new IllegalArgumentException("there is no argument " + argument);
            }
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        env.socketTextStream("127.0.0.1", port)
                .map(word -> Tuple2.of(word, 1L))
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(pair -> pair.f0)
                .process(new CountPerKey())
                .print();
        env.execute("latency");
    }

    private static final class CountPerKey extends KeyedProcessFunction<String, Tuple2<String, Long>, String> {

        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple2<String, Long> value, Context context, Collector<String> out)
                throws Exception {
            // As in the Python version: it fails once, and not when the word comes again.
            if (value.f0.startsWith(POISON) && Files.deleteIfExists(Path.of(value.f0.substring(POISON.length())))) {
                throw new IllegalStateException("this record cannot be counted");
            }
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            out.collect("RESULT " + value.f0 + " " + now);
        }
    }
}
