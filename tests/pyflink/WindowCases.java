import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.AllWindowedStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.delta.DeltaFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.GlobalWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.evictors.CountEvictor;
import org.apache.flink.streaming.api.windowing.evictors.DeltaEvictor;
import org.apache.flink.streaming.api.windowing.evictors.Evictor;
import org.apache.flink.streaming.api.windowing.evictors.TimeEvictor;
import org.apache.flink.streaming.api.windowing.triggers.ContinuousEventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.streaming.api.windowing.triggers.DeltaTrigger;
import org.apache.flink.streaming.api.windowing.triggers.EventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.PurgingTrigger;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Runs window cases on Flink itself, where every element carries the watermark that follows it.
 *
 * <p>javac -cp flink-dist.jar -d out WindowCases.java; java -cp flink-dist.jar:out WindowCases cases.json results.json
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public class WindowCases {
    static final ObjectMapper JSON = new ObjectMapper();
    static final TypeInformation ELEMENT = Types.TUPLE(Types.STRING, Types.LONG, Types.STRING);
    static final OutputTag<Tuple3<String, Long, String>> LATE =
            new OutputTag<Tuple3<String, Long, String>>("late") {};

    /** Emits the watermark that an element carries right after it. */
    static class Carried implements WatermarkGenerator<Tuple5<String, Long, String, Long, Long>> {
        @Override
        public void onEvent(Tuple5<String, Long, String, Long, Long> event, long time, WatermarkOutput output) {
            if (event.f4 > Long.MIN_VALUE) {
                output.emitWatermark(new Watermark(event.f4));
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    static class Join implements ReduceFunction<Tuple3<String, Long, String>> {
        @Override
        public Tuple3<String, Long, String> reduce(Tuple3<String, Long, String> l, Tuple3<String, Long, String> r) {
            return Tuple3.of(l.f0, l.f1 + r.f1, l.f2 + r.f2);
        }
    }

    static class Texts implements AggregateFunction<Tuple3<String, Long, String>, String, String> {
        @Override
        public String createAccumulator() {
            return "";
        }

        @Override
        public String add(Tuple3<String, Long, String> value, String held) {
            return merge(held, value.f2);
        }

        @Override
        public String getResult(String held) {
            return held;
        }

        @Override
        public String merge(String a, String b) {
            return a.isEmpty() ? b : b.isEmpty() ? a : a + "-" + b;
        }
    }

    static class Difference implements DeltaFunction<Tuple3<String, Long, String>> {
        @Override
        public double getDelta(Tuple3<String, Long, String> before, Tuple3<String, Long, String> after) {
            return after.f1 - before.f1;
        }
    }

    static Object plain(Object element) {
        if (element instanceof Tuple3) {
            Tuple3<?, ?, ?> tuple = (Tuple3<?, ?, ?>) element;
            return List.of(tuple.f0, tuple.f1, tuple.f2);
        }
        return element;
    }

    static List<Object> show(Window window, Iterable<?> elements) {
        List<Object> shown = new ArrayList<>();
        shown.add(window instanceof TimeWindow ? ((TimeWindow) window).getStart() : null);
        shown.add(window instanceof TimeWindow ? ((TimeWindow) window).getEnd() : null);
        List<Object> inner = new ArrayList<>();
        elements.forEach(element -> inner.add(plain(element)));
        shown.add(inner);
        return shown;
    }

    /** Shows a window; counts firings per window and per key if asked to. */
    static class Show extends ProcessWindowFunction<Object, String, String, Window> {
        final boolean stateful;

        Show(boolean stateful) {
            this.stateful = stateful;
        }

        @Override
        public void process(String key, Context context, Iterable<Object> elements, Collector<String> out)
                throws Exception {
            List<Object> shown = show(context.window(), elements);
            shown.add(0, key);
            if (stateful) {
                ValueState<Long> ofWindow = context.windowState().getState(count("of-window"));
                ValueState<Long> ofKey = context.globalState().getState(count("of-key"));
                ofWindow.update(ofWindow.value() == null ? 1 : ofWindow.value() + 1);
                ofKey.update(ofKey.value() == null ? 1 : ofKey.value() + 1);
                shown.add(List.of(ofWindow.value(), ofKey.value()));
                shown.add(context.currentWatermark());
            }
            out.collect(JSON.writeValueAsString(shown));
        }

        @Override
        public void clear(Context context) throws Exception {
            if (stateful) {
                context.windowState().getState(count("of-window")).clear();
            }
        }

        static ValueStateDescriptor<Long> count(String name) {
            return new ValueStateDescriptor<>(name, Types.LONG);
        }
    }

    static class ShowAll extends ProcessAllWindowFunction<Object, String, Window> {
        @Override
        public void process(Context context, Iterable<Object> elements, Collector<String> out) throws Exception {
            out.collect(JSON.writeValueAsString(show(context.window(), elements)));
        }
    }

    /** Passes JSON texts on, and turns everything else into JSON; with where it came from and its timestamp. */
    static class Stamp extends ProcessFunction<Object, String> {
        final String where;

        Stamp(String where) {
            this.where = where;
        }

        @Override
        public void processElement(Object value, Context context, Collector<String> out) throws Exception {
            boolean isJson = value instanceof String && ((String) value).startsWith("[");
            String text = isJson ? (String) value : JSON.writeValueAsString(plain(value));
            out.collect("[\"" + where + "\", " + text + ", " + context.timestamp() + "]");
        }
    }

    static WindowAssigner assigner(JsonNode spec) {
        long[] n = new long[4];
        for (int i = 1; i < spec.size(); i++) {
            n[i] = spec.get(i).asLong();
        }
        switch (spec.get(0).asText()) {
            case "tumbling":
                return TumblingEventTimeWindows.of(Duration.ofMillis(n[1]), Duration.ofMillis(n[2]));
            case "sliding":
                return SlidingEventTimeWindows.of(
                        Duration.ofMillis(n[1]), Duration.ofMillis(n[2]), Duration.ofMillis(n[3]));
            case "session":
                return EventTimeSessionWindows.withGap(Duration.ofMillis(n[1]));
            case "dynamic":
                return EventTimeSessionWindows.withDynamicGap(e -> ((Tuple3<String, Long, String>) e).f1);
            default:
                return GlobalWindows.create();
        }
    }

    static Trigger trigger(JsonNode spec) {
        switch (spec.get(0).asText()) {
            case "purging":
                return PurgingTrigger.of(trigger(spec.get(1)));
            case "count":
                return CountTrigger.of(spec.get(1).asLong());
            case "continuous":
                return ContinuousEventTimeTrigger.of(Duration.ofMillis(spec.get(1).asLong()));
            case "delta":
                return DeltaTrigger.of(
                        spec.get(1).asDouble(),
                        new Difference(),
                        (TypeSerializer) ELEMENT.createSerializer(new SerializerConfigImpl()));
            default:
                return EventTimeTrigger.create();
        }
    }

    static Evictor evictor(JsonNode spec) {
        boolean after = spec.get(2).asBoolean();
        switch (spec.get(0).asText()) {
            case "count":
                return CountEvictor.of(spec.get(1).asLong(), after);
            case "time":
                return TimeEvictor.of(Duration.ofMillis(spec.get(1).asLong()), after);
            default:
                return DeltaEvictor.of(spec.get(1).asDouble(), new Difference(), after);
        }
    }

    static SingleOutputStreamOperator windowed(DataStream stream, JsonNode spec) {
        String contents = spec.get("contents").asText();
        boolean stateful = contents.contains("stateful");
        boolean isPlain = !contents.contains("+");
        if (spec.path("all").asBoolean()) {
            AllWindowedStream windows = stream.windowAll(assigner(spec.get("assigner")));
            if (contents.startsWith("aggregate")) {
                return windows.aggregate(new Texts(), new ShowAll(), Types.STRING, Types.STRING, Types.STRING);
            }
            return windows.process(new ShowAll(), Types.STRING);
        }
        WindowedStream windows =
                stream.keyBy(e -> ((Tuple3<String, Long, String>) e).f0, Types.STRING)
                        .window(assigner(spec.get("assigner")));
        if (spec.has("trigger")) {
            windows = windows.trigger(trigger(spec.get("trigger")));
        }
        if (spec.has("evictor")) {
            windows = windows.evictor(evictor(spec.get("evictor")));
        }
        if (spec.has("lateness")) {
            windows = windows.allowedLateness(Duration.ofMillis(spec.get("lateness").asLong()));
        }
        if (spec.path("late_tag").asBoolean()) {
            windows = windows.sideOutputLateData(LATE);
        }
        if (contents.startsWith("reduce")) {
            return isPlain ? windows.reduce(new Join()) : windows.reduce(new Join(), new Show(false), Types.STRING);
        }
        if (contents.startsWith("aggregate")) {
            return isPlain
                    ? windows.aggregate(new Texts(), Types.STRING, Types.STRING)
                    : windows.aggregate(new Texts(), new Show(false), Types.STRING, Types.STRING, Types.STRING);
        }
        return windows.process(new Show(stateful), Types.STRING);
    }

    static Map<String, List<Object>> run(JsonNode spec) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        List<Tuple5<String, Long, String, Long, Long>> events = new ArrayList<>();
        for (JsonNode event : spec.get("events")) {
            events.add(
                    Tuple5.of(
                            event.get(0).asText(),
                            event.get(1).asLong(),
                            event.get(2).asText(),
                            event.get(3).asLong(),
                            event.get(4).isNull() ? Long.MIN_VALUE : event.get(4).asLong()));
        }
        DataStream stream =
                env.fromData(events)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy
                                        .<Tuple5<String, Long, String, Long, Long>>forGenerator(c -> new Carried())
                                        .withTimestampAssigner((e, t) -> e.f3))
                        .map(e -> Tuple3.of(e.f0, e.f1, e.f2))
                        .returns(ELEMENT);
        SingleOutputStreamOperator results = windowed(stream, spec);
        DataStream<String> stamped = results.process(new Stamp("main"), Types.STRING);
        if (spec.path("late_tag").asBoolean()) {
            stamped = stamped.union(((DataStream) results.getSideOutput(LATE)).process(new Stamp("late"), Types.STRING));
        }
        Map<String, List<Object>> emitted = new TreeMap<>(Map.of("main", new ArrayList<>(), "late", new ArrayList<>()));
        try (CloseableIterator<String> records = stamped.executeAndCollect()) {
            while (records.hasNext()) {
                JsonNode record = JSON.readTree(records.next());
                emitted.get(record.get(0).asText()).add(List.of(record.get(1), record.get(2)));
            }
        }
        return emitted;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> results = new TreeMap<>();
        for (Iterator<JsonNode> specs = JSON.readTree(new File(args[0])).elements(); specs.hasNext(); ) {
            JsonNode spec = specs.next();
            if (!spec.get("assigner").get(0).asText().startsWith("count")) {
                results.put(spec.get("name").asText(), run(spec));
                System.out.println(spec.get("name").asText() + " " + JSON.writeValueAsString(results.get(spec.get("name").asText())));
            }
        }
        JSON.writeValue(new File(args[1]), results);
    }
}
