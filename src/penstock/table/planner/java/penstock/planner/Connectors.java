package penstock.planner;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsOverwrite;
import org.apache.flink.table.connector.sink.abilities.SupportsPartitioning;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.connector.source.abilities.SupportsSourceWatermark;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.module.Module;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;

/**
 * What the planner needs to know of the connectors: which changes their tables have, which metadata, where watermarks are made. They are
 * planned with and never run. A module's factories are asked before those of ServiceLoader, so one class serves every connector's name.
 * Written for Janino: no lambdas, no inferred type arguments.
 */
public class Connectors implements Module {
    public Optional getTableSourceFactory() {
        return Optional.of(new TableFactory());
    }

    public Optional getTableSinkFactory() {
        return Optional.of(new TableFactory());
    }

    static String connectorOf(ResolvedCatalogTable table) {
        return String.valueOf(table.getOptions().get("connector"));
    }

    static boolean isKafka(String connector) {
        return connector.equals("kafka") || connector.equals("upsert-kafka");
    }

    /** The changes that a table's rows can be: `insert`, `upsert`, `all`, or for a sink `requested` (it takes whatever comes). */
    static String changesOf(ResolvedCatalogTable table, boolean writing) {
        Map options = table.getOptions();
        Object told = options.get("penstock.changelog");
        if (told != null) {
            return (String) told;
        }
        String connector = connectorOf(table);
        boolean hasKey = table.getResolvedSchema().getPrimaryKey().isPresent();
        if (connector.equals("upsert-kafka")) {
            if (!hasKey) {
                throw new ValidationException("'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies which columns should be read from or write to the Kafka message key.");
            }
            return "upsert";
        }
        Object format = options.get("value.format") != null ? options.get("value.format") : options.get("format");
        if (format != null && (String.valueOf(format).startsWith("debezium") || format.equals("canal-json") || format.equals("maxwell-json") || format.equals("ogg-json"))) {
            return "all";
        }
        if (writing) {
            if (connector.equals("jdbc") || connector.startsWith("elasticsearch") || connector.startsWith("opensearch")) {
                return hasKey ? "upsert" : "insert";
            }
            if (connector.equals("print") || connector.equals("collect")) {
                return "requested";
            }
            if (connector.equals("blackhole")) {
                return "requested-without-update-before";
            }
        }
        return "insert";
    }

    static ChangelogMode mode(String changes, ChangelogMode requested) {
        if (changes.equals("all")) {
            return ChangelogMode.all();
        }
        if (changes.equals("upsert")) {
            return ChangelogMode.upsert();
        }
        if (changes.equals("requested")) {
            return requested;
        }
        if (changes.equals("requested-without-update-before")) {
            ChangelogMode.Builder builder = ChangelogMode.newBuilder();
            for (Iterator i = requested.getContainedKinds().iterator(); i.hasNext(); ) {
                RowKind kind = (RowKind) i.next();
                if (kind != RowKind.UPDATE_BEFORE) {
                    builder.addContainedKind(kind);
                }
            }
            return builder.build();
        }
        return ChangelogMode.insertOnly();
    }

    /** The metadata columns of a connector: Kafka's and those of files as their documentation types them, others as the table declares them. */
    static Map metadataOf(ResolvedCatalogTable table, boolean writing) {
        Map found = new HashMap();
        String connector = connectorOf(table);
        if (isKafka(connector)) {
            DataType headers = (DataType) DataTypes.MAP((DataType) DataTypes.STRING().nullable(), (DataType) DataTypes.BYTES().nullable()).nullable();
            if (writing) {
                found.put("headers", headers);
                found.put("timestamp", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3).nullable());
                return found;
            }
            found.put("topic", DataTypes.STRING().notNull());
            found.put("partition", DataTypes.INT().notNull());
            found.put("headers", headers.notNull());
            found.put("leader-epoch", DataTypes.INT().nullable());
            found.put("offset", DataTypes.BIGINT().notNull());
            found.put("timestamp", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3).notNull());
            found.put("timestamp-type", DataTypes.STRING().notNull());
        } else if (connector.equals("filesystem") && !writing) {
            found.put("file.path", DataTypes.STRING().notNull());
            found.put("file.name", DataTypes.STRING().notNull());
            found.put("file.size", DataTypes.BIGINT().notNull());
            found.put("file.modification-time", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3).notNull());
        }
        List columns = table.getResolvedSchema().getColumns();
        for (int i = 0; i < columns.size(); i++) {
            if (columns.get(i) instanceof Column.MetadataColumn) {
                Column.MetadataColumn column = (Column.MetadataColumn) columns.get(i);
                String key = (String) column.getMetadataKey().orElse(column.getName());
                boolean isOpen = !isKafka(connector) && !connector.equals("filesystem") || key.startsWith("value.");
                if (!found.containsKey(key) && isOpen) {
                    found.put(key, column.getDataType());
                }
            }
        }
        return found;
    }

    static boolean isBounded(ResolvedCatalogTable table) {
        Map options = table.getOptions();
        Object told = options.get("penstock.bounded");
        if (told != null) {
            return told.equals("true");
        }
        String connector = connectorOf(table);
        Object mode = options.get("scan.bounded.mode");
        return connector.equals("jdbc")
                || connector.equals("filesystem") && options.get("source.monitor-interval") == null
                || connector.equals("datagen") && isDatagenBounded(options)
                || mode != null && !"unbounded".equals(mode);
    }

    private static boolean isDatagenBounded(Map options) {
        if (options.get("number-of-rows") != null) {
            return true;
        }
        for (Iterator i = options.entrySet().iterator(); i.hasNext(); ) {
            Map.Entry entry = (Map.Entry) i.next();
            if (String.valueOf(entry.getKey()).endsWith(".kind") && "sequence".equals(entry.getValue())) {
                return true;
            }
        }
        return false;
    }

    public static class TableFactory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        public String factoryIdentifier() {
            return "any";
        }

        public Set requiredOptions() {
            return new HashSet();
        }

        public Set optionalOptions() {
            return new HashSet();
        }

        public DynamicTableSource createDynamicTableSource(DynamicTableFactory.Context context) {
            ResolvedCatalogTable table = context.getCatalogTable();
            String connector = connectorOf(table);
            if (connector.equals("jdbc")) {
                return new LookupSource(table);
            }
            if (connector.equals("penstock-stream")) {
                return new StreamSource(table);
            }
            return isKafka(connector) ? new WatermarkedSource(table) : new Source(table);
        }

        public DynamicTableSink createDynamicTableSink(DynamicTableFactory.Context context) {
            return new Sink(context.getCatalogTable());
        }
    }

    /** Stands for what reads a table where Flink draws the whole job, which EXPLAIN does. */
    public static class Scan extends NumberSequenceSource {
        private final boolean bounded;

        public Scan(boolean bounded) {
            super(0, 0);
            this.bounded = bounded;
        }

        public Boundedness getBoundedness() {
            return bounded ? Boundedness.BOUNDED : Boundedness.CONTINUOUS_UNBOUNDED;
        }
    }

    static class Source implements ScanTableSource, SupportsReadingMetadata {
        protected final ResolvedCatalogTable table;

        Source(ResolvedCatalogTable table) {
            this.table = table;
        }

        public ChangelogMode getChangelogMode() {
            return mode(changesOf(table, false), null);
        }

        public ScanTableSource.ScanRuntimeProvider getScanRuntimeProvider(ScanTableSource.ScanContext context) {
            return SourceProvider.of((org.apache.flink.api.connector.source.Source) new Scan(Connectors.isBounded(table)));
        }

        public Map listReadableMetadata() {
            return metadataOf(table, false);
        }

        public void applyReadableMetadata(List keys, DataType produced) {}

        public DynamicTableSource copy() {
            return new Source(table);
        }

        public String asSummaryString() {
            return connectorOf(table);
        }
    }

    /** As Kafka's: the watermark is an ability of the scan, so that each partition can have one; else it is a node of its own. */
    static class WatermarkedSource extends Source implements SupportsWatermarkPushDown {
        WatermarkedSource(ResolvedCatalogTable table) {
            super(table);
        }

        public void applyWatermark(WatermarkStrategy strategy) {}

        public DynamicTableSource copy() {
            return new WatermarkedSource(table);
        }
    }

    /** A DataStream, whose own watermarks SOURCE_WATERMARK() means. */
    static class StreamSource extends Source implements SupportsSourceWatermark {
        StreamSource(ResolvedCatalogTable table) {
            super(table);
        }

        public void applySourceWatermark() {}

        public DynamicTableSource copy() {
            return new StreamSource(table);
        }
    }

    static class LookupSource implements ScanTableSource, LookupTableSource, SupportsProjectionPushDown {
        private final ResolvedCatalogTable table;

        LookupSource(ResolvedCatalogTable table) {
            this.table = table;
        }

        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        public ScanTableSource.ScanRuntimeProvider getScanRuntimeProvider(ScanTableSource.ScanContext context) {
            return SourceProvider.of((org.apache.flink.api.connector.source.Source) new Scan(true));
        }

        public LookupTableSource.LookupRuntimeProvider getLookupRuntimeProvider(LookupTableSource.LookupContext context) {
            return LookupFunctionProvider.of(new NeverCalled());
        }

        public boolean supportsNestedProjection() {
            return false;
        }

        public void applyProjection(int[][] fields, DataType produced) {}

        public DynamicTableSource copy() {
            return new LookupSource(table);
        }

        public String asSummaryString() {
            return connectorOf(table);
        }
    }

    public static class NeverCalled extends LookupFunction {
        public Collection lookup(RowData key) {
            throw new UnsupportedOperationException("this table is only planned with");
        }
    }

    static class Sink implements DynamicTableSink, SupportsWritingMetadata, SupportsPartitioning, SupportsOverwrite {
        private final ResolvedCatalogTable table;

        Sink(ResolvedCatalogTable table) {
            this.table = table;
        }

        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return mode(changesOf(table, true), requested);
        }

        public DynamicTableSink.SinkRuntimeProvider getSinkRuntimeProvider(DynamicTableSink.Context context) {
            return SinkV2Provider.of((org.apache.flink.api.connector.sink2.Sink) new DiscardingSink());
        }

        public Map listWritableMetadata() {
            return metadataOf(table, true);
        }

        public void applyWritableMetadata(List keys, DataType consumed) {}

        public void applyStaticPartition(Map partition) {}

        public void applyOverwrite(boolean overwrite) {}

        public DynamicTableSink copy() {
            return new Sink(table);
        }

        public String asSummaryString() {
            return connectorOf(table);
        }
    }
}
