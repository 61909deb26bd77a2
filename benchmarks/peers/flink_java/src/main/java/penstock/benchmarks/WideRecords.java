package penstock.benchmarks;

import java.util.Arrays;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/** Rows of 50 fields and 2 KB: the newest of each customer is kept, with how many they were so far. */
final class WideRecords implements CollectedBenchmark {

    private static final int TEXTS = 48;
    private static final int TEXT_LENGTH = 40;
    private static final int KINDS = 1_009;
    private static final long SHOWS_ONE_CUSTOMER_OF = 100;

    @Override
    public DataStream<?> build(StreamExecutionEnvironment env, Setting setting) {
        long keys = setting.keys();
        String[][] texts = texts();
        TypeInformation<?>[] types = new TypeInformation<?>[2 + TEXTS];
        Arrays.fill(types, Types.STRING);
        types[0] = Types.LONG;
        types[1] = Types.LONG;
        TypeInformation<Row> rowType = Types.ROW(types);
        return Benchmark.numbers(env, setting)
                .map(number -> row(number, keys, texts[(int) (number % KINDS)]))
                .returns(rowType)
                .keyBy(row -> (Long) row.getField(0))
                .process(new KeepNewest(rowType));
    }

    private static Row row(long number, long keys, String[] texts) {
        Row row = new Row(2 + TEXTS);
        row.setField(0, number * 7919 % keys);
        row.setField(1, 0L);
        for (int at = 0; at < TEXTS; at++) {
            row.setField(2 + at, texts[at]);
        }
        return row;
    }

    private static String[][] texts() {
        String[][] texts = new String[KINDS][TEXTS];
        for (int kind = 0; kind < KINDS; kind++) {
            for (int at = 0; at < TEXTS; at++) {
                StringBuilder text = new StringBuilder("field " + at + " of kind " + kind + " ");
                while (text.length() < TEXT_LENGTH) {
                    text.append('.');
                }
                texts[kind][at] = text.toString();
            }
        }
        return texts;
    }

    private static final class KeepNewest extends KeyedProcessFunction<Long, Row, Tuple2<Long, Long>> {

        private final TypeInformation<Row> rowType;
        private transient ValueState<Row> newest;

        KeepNewest(TypeInformation<Row> rowType) {
            this.rowType = rowType;
        }

        @Override
        public void open(OpenContext context) {
            newest = getRuntimeContext().getState(new ValueStateDescriptor<>("newest", rowType));
        }

        @Override
        public void processElement(Row row, Context context, Collector<Tuple2<Long, Long>> out) throws Exception {
            Row before = newest.value();
            long seen = before == null ? 1 : (Long) before.getField(1) + 1;
            row.setField(1, seen);
            newest.update(row);
            long customer = (Long) row.getField(0);
            if (customer % SHOWS_ONE_CUSTOMER_OF == 0) {
                out.collect(Tuple2.of(customer, seen));
            }
        }
    }
}
