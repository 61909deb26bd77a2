package penstock.planner;

import org.apache.flink.table.catalog.DataTypeFactory;
import org.apache.flink.table.functions.AggregateFunction;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.functions.TableFunction;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.functions.python.PythonAggregateFunction;
import org.apache.flink.table.functions.python.PythonEnv;
import org.apache.flink.table.functions.python.PythonFunctionKind;
import org.apache.flink.table.functions.python.PythonScalarFunction;
import org.apache.flink.table.functions.python.PythonTableFunction;
import org.apache.flink.table.types.inference.TypeInference;

/**
 * Functions of Python, by their types alone. To the planner they are plain functions, called where the statement calls them: Flink's own
 * classes for Python would be planned as calls of another process, in nodes of their own. Their rules for types are used. Never folded to
 * constants, as Flink never does it with Python.
 */
public class Functions {
    static UserDefinedFunction of(String form, String name, String[] inputs, String result, String accumulator, boolean deterministic) {
        PythonFunctionKind kind = PythonFunctionKind.GENERAL;
        PythonEnv process = new PythonEnv(PythonEnv.ExecType.PROCESS);
        if (form.equals("table")) {
            return new Rows(new PythonTableFunction(name, new byte[0], inputs, result, kind, deterministic, false, process));
        }
        if (form.equals("aggregate")) {
            return new Aggregate(new PythonAggregateFunction(name, new byte[0], inputs, result, accumulator, kind, deterministic, false, process));
        }
        return new Scalar(new PythonScalarFunction(name, new byte[0], inputs, result, kind, deterministic, false, process));
    }

    static UnsupportedOperationException neverCalled() {
        return new UnsupportedOperationException("this function is only planned with");
    }

    public static class Scalar extends ScalarFunction {
        private final PythonScalarFunction python;

        public Scalar(PythonScalarFunction python) {
            this.python = python;
        }

        public Object eval(Object[] arguments) {
            throw neverCalled();
        }

        public TypeInference getTypeInference(DataTypeFactory factory) {
            return python.getTypeInference(factory);
        }

        public boolean isDeterministic() {
            return python.isDeterministic();
        }

        public boolean supportsConstantFolding() {
            return false;
        }

        public String toString() {
            return python.toString();
        }
    }

    public static class Rows extends TableFunction {
        private final PythonTableFunction python;

        public Rows(PythonTableFunction python) {
            this.python = python;
        }

        public void eval(Object[] arguments) {
            throw neverCalled();
        }

        public TypeInference getTypeInference(DataTypeFactory factory) {
            return python.getTypeInference(factory);
        }

        public boolean isDeterministic() {
            return python.isDeterministic();
        }

        public boolean supportsConstantFolding() {
            return false;
        }

        public String toString() {
            return python.toString();
        }
    }

    public static class Aggregate extends AggregateFunction {
        private final PythonAggregateFunction python;

        public Aggregate(PythonAggregateFunction python) {
            this.python = python;
        }

        public Object createAccumulator() {
            throw neverCalled();
        }

        public Object getValue(Object accumulator) {
            throw neverCalled();
        }

        public void accumulate(Object accumulator, Object[] arguments) {
            throw neverCalled();
        }

        public void retract(Object accumulator, Object[] arguments) {
            throw neverCalled();
        }

        public void merge(Object accumulator, Iterable others) {
            throw neverCalled();
        }

        public TypeInference getTypeInference(DataTypeFactory factory) {
            return python.getTypeInference(factory);
        }

        public boolean isDeterministic() {
            return python.isDeterministic();
        }

        public boolean supportsConstantFolding() {
            return false;
        }

        public String toString() {
            return python.toString();
        }
    }
}
