package penstock.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;

import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.ExplainFormat;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.internal.TableEnvironmentInternal;
import org.apache.flink.table.catalog.CatalogFunction;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ContextResolvedTable;
import org.apache.flink.table.catalog.FunctionLanguage;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.catalog.UniqueConstraint;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.operations.CreateTableASOperation;
import org.apache.flink.table.operations.ModifyOperation;
import org.apache.flink.table.operations.Operation;
import org.apache.flink.table.operations.QueryOperation;
import org.apache.flink.table.operations.SinkModifyOperation;
import org.apache.flink.table.operations.StatementSetOperation;
import org.apache.flink.table.operations.command.ExecutePlanOperation;
import org.apache.flink.table.operations.command.ResetOperation;
import org.apache.flink.table.operations.command.SetOperation;
import org.apache.flink.table.operations.ddl.CreateCatalogFunctionOperation;
import org.apache.flink.table.operations.ddl.CreateTempSystemFunctionOperation;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.TimestampKind;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * What Python calls: texts in, texts out (JSON where there is more than one). Everything of Flink's happens on one thread of its own. Calcite
 * keeps metadata by thread, so an environment that is used from a second thread fails. And the context class loader must be this class's:
 * left so on a thread of py4j's, PySpark no longer finds its own classes. Written for Janino: no lambdas, no inferred type arguments.
 */
public class Planner implements ThreadFactory {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** What Flink would run itself: none of it may start here. */
    private static final String[] JOBS = {
        "CompileAndExecutePlanOperation", "ReplaceTableAsOperation", "AnalyzeTableOperation", "TruncateTableOperation", "PlannerCallProcedureOperation", "CallProcedureOperation"
    };

    private final ExecutorService executor = Executors.newSingleThreadExecutor(this);
    private TableEnvironmentInternal environment;

    public Planner(final boolean streaming, final String catalog, final String database) throws Throwable {
        call(new Callable() {
            public Object call() {
                EnvironmentSettings.Builder settings = EnvironmentSettings.newInstance().withBuiltInCatalogName(catalog).withBuiltInDatabaseName(database);
                environment = (TableEnvironmentInternal) TableEnvironment.create((streaming ? settings.inStreamingMode() : settings.inBatchMode()).build());
                environment.loadModule("penstock", new Connectors());
                return null;
            }
        });
    }

    public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, "penstock-planner");
        thread.setDaemon(true);
        thread.setContextClassLoader(Planner.class.getClassLoader());
        return thread;
    }

    private Object call(Callable task) throws Throwable {
        try {
            return executor.submit(task).get();
        } catch (ExecutionException e) {
            throw e.getCause();
        }
    }

    private static Map answer(String kind) {
        Map answer = new LinkedHashMap();
        answer.put("kind", kind);
        return answer;
    }

    public void close() {
        executor.shutdown();
    }

    public void set(final String key, final String value) throws Throwable {
        call(new Callable() {
            public Object call() {
                environment.getConfig().set(key, value);
                return null;
            }
        });
    }

    public void reset(final String key) throws Throwable {
        call(new Callable() {
            public Object call() {
                environment.getConfig().getConfiguration().removeConfig(ConfigOptions.key(key).stringType().noDefaultValue());
                return null;
            }
        });
    }

    /** Names of what the environment has. */
    public String[] names(final String what) throws Throwable {
        return (String[]) call(new Callable() {
            public Object call() {
                if (what.equals("catalogs")) {
                    return environment.listCatalogs();
                } else if (what.equals("databases")) {
                    return environment.listDatabases();
                } else if (what.equals("tables")) {
                    return environment.listTables();
                } else if (what.equals("views")) {
                    return environment.listViews();
                } else if (what.equals("functions")) {
                    return environment.listFunctions();
                } else if (what.equals("user functions")) {
                    return environment.listUserDefinedFunctions();
                } else if (what.equals("temporary tables")) {
                    return environment.listTemporaryTables();
                } else if (what.equals("temporary views")) {
                    return environment.listTemporaryViews();
                } else if (what.equals("current")) {
                    return new String[] {environment.getCurrentCatalog(), environment.getCurrentDatabase()};
                }
                throw new IllegalArgumentException(what);
            }
        });
    }

    /** Removes a temporary table, view or function; false if there is none. */
    public boolean dropTemporary(final String what, final String path) throws Throwable {
        return ((Boolean) call(new Callable() {
            public Object call() {
                if (what.equals("table")) {
                    return Boolean.valueOf(environment.dropTemporaryTable(path));
                } else if (what.equals("view")) {
                    return Boolean.valueOf(environment.dropTemporaryView(path));
                } else if (what.equals("function")) {
                    return Boolean.valueOf(environment.dropTemporaryFunction(path));
                }
                return Boolean.valueOf(environment.dropTemporarySystemFunction(path));
            }
        })).booleanValue();
    }

    /** Runs a statement that is no job, and answers with its rows; of a query, an INSERT or a statement set it answers with the plan. */
    public String execute(final String statement) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                List operations = environment.getParser().parse(statement);
                if (operations.size() != 1) {
                    throw new IllegalArgumentException("a single statement is expected, got " + operations.size());
                }
                return JSON.writeValueAsString(execute((Operation) operations.get(0), statement));
            }
        });
    }

    private Map execute(Operation operation, String statement) throws Exception {
        if (operation instanceof CreateTableASOperation) {
            CreateTableASOperation both = (CreateTableASOperation) operation;
            environment.executeInternal(both.getCreateTableOperation());
            return inserts(Collections.singletonList(both.toSinkModifyOperation(environment.getCatalogManager())));
        }
        if (operation instanceof StatementSetOperation) {
            return inserts(((StatementSetOperation) operation).getOperations());
        }
        if (operation instanceof ModifyOperation) {
            return inserts(Collections.singletonList(operation));
        }
        if (operation instanceof QueryOperation) {
            return plan(statement, "requested");
        }
        if (operation instanceof SetOperation) {
            Map answer = answer("set");
            answer.put("key", ((SetOperation) operation).getKey().orElse(null));
            answer.put("value", ((SetOperation) operation).getValue().orElse(null));
            return answer;
        }
        if (operation instanceof ResetOperation) {
            Map answer = answer("reset");
            answer.put("key", ((ResetOperation) operation).getKey().orElse(null));
            return answer;
        }
        if (operation instanceof ExecutePlanOperation) {
            Map answer = answer("plan");
            answer.put("file", ((ExecutePlanOperation) operation).getFilePath());
            return answer;
        }
        for (int i = 0; i < JOBS.length; i++) {
            if (operation.getClass().getSimpleName().equals(JOBS[i])) {
                throw new UnsupportedOperationException(operation.asSummaryString());
            }
        }
        if (operation instanceof CreateTempSystemFunctionOperation) {
            CreateTempSystemFunctionOperation create = (CreateTempSystemFunctionOperation) operation;
            if (create.getCatalogFunction().getFunctionLanguage() == FunctionLanguage.PYTHON) {
                return function(create.getFunctionName(), create.getCatalogFunction(), true, create.isIgnoreIfExists());
            }
        }
        if (operation instanceof CreateCatalogFunctionOperation) {
            CreateCatalogFunctionOperation create = (CreateCatalogFunctionOperation) operation;
            if (create.getCatalogFunction().getFunctionLanguage() == FunctionLanguage.PYTHON) {
                return function(create.getFunctionIdentifier().asSerializableString(), create.getCatalogFunction(), false, create.isIgnoreIfExists());
            }
        }
        TableResult result;
        try {
            result = environment.executeInternal(operation);
        } catch (ValidationException e) {
            throw functionsOfPython(e);
        }
        Map answer = answer("result");
        answer.put("operation", operation.getClass().getSimpleName());
        answer.put("resultKind", result.getResultKind().name());
        answer.put("columns", columns(result.getResolvedSchema()));
        List rows = new ArrayList();
        CloseableIterator each = result.collect();
        while (each.hasNext()) {
            Row row = (Row) each.next();
            List values = new ArrayList();
            for (int i = 0; i < row.getArity(); i++) {
                Object value = row.getField(i);
                values.add(value == null || value instanceof Boolean || value instanceof Number ? value : value.toString());
            }
            rows.add(values);
        }
        answer.put("rows", rows);
        return answer;
    }

    /** A function that Python is to find by its name, and then to declare. */
    private Map function(String name, CatalogFunction described, boolean ofSystem, boolean ignoreIfExists) {
        Map answer = answer("function");
        answer.put("name", name);
        answer.put("class", described.getClassName());
        answer.put("ofSystem", Boolean.valueOf(ofSystem));
        answer.put("exists", Boolean.valueOf(Arrays.asList(environment.listUserDefinedFunctions()).contains(name.substring(name.lastIndexOf('.') + 1).replace("`", "").toLowerCase())));
        answer.put("ignoreIfExists", Boolean.valueOf(ignoreIfExists));
        return answer;
    }

    private Map inserts(List operations) throws Exception {
        List sinks = new ArrayList();
        for (int i = 0; i < operations.size(); i++) {
            Object operation = operations.get(i);
            if (operation instanceof SinkModifyOperation) {
                SinkModifyOperation insert = (SinkModifyOperation) operation;
                if (insert.isDelete() || insert.isUpdate()) {
                    throw new UnsupportedOperationException("DELETE and UPDATE statements");
                }
                sinks.add(insert.getContextResolvedTable().getIdentifier().asSummaryString());
            } else {
                throw new UnsupportedOperationException(operation.getClass().getSimpleName());
            }
        }
        Map answer = answer("insert");
        answer.put("sinks", sinks);
        answer.put("plan", environment.compilePlan(operations).asJsonString());
        return answer;
    }

    /** The plan of a query whose rows may be these changes: `insert`, `upsert`, `all` or `requested`. */
    public String query(final String query, final String changes) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                return JSON.writeValueAsString(plan(query, changes));
            }
        });
    }

    /** A query is planned as an insert into a table that has no name, of the connector `collect`, with the query's columns. */
    private Map plan(String query, String changes) throws Exception {
        Table table = environment.sqlQuery(query);
        Map answer = answer("query");
        answer.put("columns", columns(table.getResolvedSchema()));
        answer.put("plan", table.insertInto(TableDescriptor.forConnector("collect").option("penstock.changelog", changes).build()).compilePlan().asJsonString());
        return answer;
    }

    /** The plan of several INSERT statements, as one job. */
    public String compile(final String[] statements) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                List operations = new ArrayList();
                for (int i = 0; i < statements.length; i++) {
                    Operation operation = (Operation) environment.getParser().parse(statements[i]).get(0);
                    if (!(operation instanceof ModifyOperation)) {
                        throw new IllegalArgumentException("a statement set takes INSERT statements only, got " + statements[i]);
                    }
                    operations.add(operation);
                }
                return JSON.writeValueAsString(inserts(operations));
            }
        });
    }

    public String explain(final String[] statements, final String[] details) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                List operations = new ArrayList();
                for (int i = 0; i < statements.length; i++) {
                    operations.addAll(environment.getParser().parse(statements[i]));
                }
                ExplainDetail[] wanted = new ExplainDetail[details.length];
                for (int i = 0; i < details.length; i++) {
                    wanted[i] = ExplainDetail.valueOf(details[i]);
                }
                try {
                    return environment.explainInternal(operations, ExplainFormat.TEXT, wanted);
                } catch (ValidationException e) {
                    throw functionsOfPython(e);
                }
            }
        });
    }

    /** Flink draws the whole job, with code that calls the functions, and finds that Python's cannot be called. */
    private static RuntimeException functionsOfPython(ValidationException e) {
        String message = String.valueOf(e.getMessage());
        boolean isOurs = message.indexOf("in class 'penstock.planner.Functions") >= 0;
        return isOurs ? (RuntimeException) new UnsupportedOperationException("EXPLAIN of statements that call Python functions") : e;
    }

    /** The columns of a query. */
    public String schema(final String query) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                return JSON.writeValueAsString(columns(environment.sqlQuery(query).getResolvedSchema()));
            }
        });
    }

    /** The schema of a query as Flink prints it. */
    public String schemaText(final String query) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                return environment.sqlQuery(query).getResolvedSchema().toString();
            }
        });
    }

    /** A table of the catalog or a temporary one: plans name the latter without saying what they are. */
    public String table(final String path) throws Throwable {
        return (String) call(new Callable() {
            public Object call() throws Exception {
                ObjectIdentifier identifier = environment.getCatalogManager().qualifyIdentifier(environment.getParser().parseIdentifier(path));
                ContextResolvedTable found = environment.getCatalogManager().getTableOrError(identifier);
                Map answer = answer("table");
                answer.put("identifier", identifier.asSerializableString());
                answer.put("columns", columns(found.getResolvedSchema()));
                UniqueConstraint key = (UniqueConstraint) found.getResolvedSchema().getPrimaryKey().orElse(null);
                answer.put("primaryKey", key == null ? null : key.getColumns());
                Object resolved = found.getResolvedTable();
                if (resolved instanceof ResolvedCatalogTable) {
                    ResolvedCatalogTable table = (ResolvedCatalogTable) resolved;
                    answer.put("options", table.getOptions());
                    answer.put("partitionKeys", table.getPartitionKeys());
                }
                return JSON.writeValueAsString(answer);
            }
        });
    }

    private static List columns(ResolvedSchema schema) {
        List found = new ArrayList();
        List columns = schema.getColumns();
        for (int i = 0; i < columns.size(); i++) {
            Column column = (Column) columns.get(i);
            Map each = new LinkedHashMap();
            each.put("name", column.getName());
            LogicalType type = column.getDataType().getLogicalType();
            each.put("dataType", text(type));
            each.put("timeAttribute", timeAttribute(type));
            if (column instanceof Column.MetadataColumn) {
                Column.MetadataColumn metadata = (Column.MetadataColumn) column;
                each.put("kind", "METADATA");
                each.put("metadataKey", metadata.getMetadataKey().orElse(metadata.getName()));
                each.put("isVirtual", metadata.isVirtual());
            } else if (column instanceof Column.ComputedColumn) {
                each.put("kind", "COMPUTED");
            }
            found.add(each);
        }
        return found;
    }

    private static String text(LogicalType type) {
        try {
            return type.asSerializableString();
        } catch (RuntimeException e) {
            return type.asSummaryString();
        }
    }

    private static String timeAttribute(LogicalType type) {
        TimestampKind kind = TimestampKind.REGULAR;
        if (type instanceof TimestampType) {
            kind = ((TimestampType) type).getKind();
        } else if (type instanceof LocalZonedTimestampType) {
            kind = ((LocalZonedTimestampType) type).getKind();
        }
        return kind == TimestampKind.REGULAR ? null : kind.name();
    }

    /**
     * Declares a Python function by its types; its code stays with Python. `form`: scalar, table or aggregate (then with the type of its
     * accumulator). A function of the system has a plain name, another one a path in the catalog.
     */
    public void declare(String form, final String name, String[] inputs, String result, String accumulator, boolean deterministic, final boolean ofSystem) throws Throwable {
        final UserDefinedFunction function = Functions.of(form, name, inputs, result, accumulator, deterministic);
        call(new Callable() {
            public Object call() {
                if (ofSystem) {
                    environment.dropTemporarySystemFunction(name);
                    environment.createTemporarySystemFunction(name, function);
                } else {
                    environment.dropTemporaryFunction(name);
                    environment.createTemporaryFunction(name, function);
                }
                return null;
            }
        });
    }
}
