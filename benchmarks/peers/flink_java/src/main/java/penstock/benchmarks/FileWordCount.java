package penstock.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.eventtime.SerializableTimestampAssigner;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.StreamFormat;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.formats.csv.CsvReaderFormat;
import org.apache.flink.formats.parquet.avro.AvroParquetReaders;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.annotation.JsonPropertyOrder;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

/** Counts the words of files in event-time windows of 10 seconds, and writes the counts to files. */
final class FileWordCount implements Benchmark {

    enum Format {
        TEXT,
        CSV,
        JSON,
        PARQUET
    }

    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final Path INPUTS = Path.of(System.getProperty("benchmarks.inputs", ".bench/inputs"));

    private final Format format;

    FileWordCount(Format format) {
        this.format = format;
    }

    @Override
    public Supplier<List<Object>> run(StreamExecutionEnvironment env, Setting setting) throws Exception {
        Path out = Files.createTempDirectory("benchmark-counts");
        counts(words(env, INPUTS.resolve(folderOf(setting)).toUri().toString()))
                .map(pair -> pair.f0 + " " + pair.f1)
                .sinkTo(
                        FileSink.forRowFormat(flinkPath(out.toUri().toString()), new SimpleStringEncoder<String>())
                                .build());
        env.execute();
        return () -> readAndDelete(out);
    }

    /** The name that benchmarks/files/lines.py gives to the folder of an input. */
    private String folderOf(Setting setting) {
        return String.join(
                "-",
                format.name().toLowerCase(),
                Long.toString(setting.records()),
                "p" + setting.parallelism(),
                Long.toString(setting.keys()),
                setting.hasSkew() ? "skewed" : "even");
    }

    private DataStream<Tuple2<String, Long>> words(StreamExecutionEnvironment env, String folder) {
        return switch (format) {
            case TEXT -> {
                DataStream<String> lines =
                        timed(env, folder, new TextLineInputFormat(), (line, before) -> timeOf(line));
                yield split(lines, (line, out) -> emit(line.substring(line.indexOf(' ') + 1), out));
            }
            case CSV -> {
                DataStream<Line> lines =
                        timed(env, folder, CsvReaderFormat.forPojo(Line.class), (line, before) -> line.time);
                yield split(lines, (line, out) -> emit(line.sentence, out));
            }
            case JSON -> {
                DataStream<Line> lines =
                        env.fromSource(
                                        FileSource.forRecordStreamFormat(new TextLineInputFormat(), flinkPath(folder))
                                                .build(),
                                        WatermarkStrategy.noWatermarks(),
                                        "lines")
                                .map(new ParseJson())
                                .assignTimestampsAndWatermarks(
                                        WatermarkStrategy.<Line>forMonotonousTimestamps()
                                                .withTimestampAssigner((line, before) -> line.time));
                yield split(lines, (line, out) -> emit(line.sentence, out));
            }
            case PARQUET -> {
                Schema schema =
                        SchemaBuilder.record("Line")
                                .fields()
                                .requiredLong("time")
                                .requiredString("sentence")
                                .endRecord();
                DataStream<GenericRecord> lines =
                        timed(
                                env,
                                folder,
                                AvroParquetReaders.forGenericRecord(schema),
                                (line, before) -> (Long) line.get("time"));
                yield split(lines, (line, out) -> emit(line.get("sentence").toString(), out));
            }
        };
    }

    private static <T> DataStream<T> timed(
            StreamExecutionEnvironment env,
            String folder,
            StreamFormat<T> format,
            SerializableTimestampAssigner<T> times) {
        return env.fromSource(
                FileSource.forRecordStreamFormat(format, flinkPath(folder)).build(),
                WatermarkStrategy.<T>forMonotonousTimestamps().withTimestampAssigner(times),
                "lines");
    }

    private static org.apache.flink.core.fs.Path flinkPath(String uri) {
        return new org.apache.flink.core.fs.Path(uri);
    }

    private static <T> DataStream<Tuple2<String, Long>> split(
            DataStream<T> lines, FlatMapFunction<T, Tuple2<String, Long>> function) {
        return lines.flatMap(function).returns(Types.TUPLE(Types.STRING, Types.LONG));
    }

    private static DataStream<Tuple2<String, Long>> counts(DataStream<Tuple2<String, Long>> words) {
        return words.keyBy(pair -> pair.f0)
                .window(TumblingEventTimeWindows.of(WINDOW))
                .reduce((a, b) -> Tuple2.of(a.f0, a.f1 + b.f1));
    }

    private static long timeOf(String line) {
        return Long.parseLong(line.substring(0, line.indexOf(' ')));
    }

    private static void emit(String sentence, Collector<Tuple2<String, Long>> out) {
        for (String word : sentence.split(" ")) {
            out.collect(Tuple2.of(word, 1L));
        }
    }

    private static List<Object> readAndDelete(Path folder) {
        List<Object> results = new ArrayList<>();
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                if (Files.isRegularFile(path)) {
                    for (String line : Files.readAllLines(path)) {
                        String[] parts = line.split(" ");
                        results.add(Tuple2.of(parts[0], Long.parseLong(parts[1])));
                    }
                }
                Files.delete(path);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        return results;
    }

    /** A line of CSV or JSON; Flink's CSV format takes columns in this order. */
    @JsonPropertyOrder({"time", "sentence"})
    public static final class Line {
        public long time;
        public String sentence;
    }

    private static final class ParseJson implements MapFunction<String, Line> {

        private static final ObjectMapper MAPPER = new ObjectMapper();

        @Override
        public Line map(String text) throws Exception {
            JsonNode found = MAPPER.readTree(text);
            Line line = new Line();
            line.time = found.get("time").longValue();
            line.sentence = found.get("sentence").textValue();
            return line;
        }
    }
}
