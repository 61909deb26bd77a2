package org.apache.flink.client.python;

import java.util.HashMap;
import java.util.Map;

import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.functions.python.PythonFunction;

/** What the planner calls, by this name, for LANGUAGE PYTHON: it finds functions that Python declared before. */
public class PythonFunctionFactory {
    private static final Map DECLARED = new HashMap();

    public static void declare(String name, PythonFunction function) {
        DECLARED.put(name, function);
    }

    public static PythonFunction getPythonFunction(String name, ReadableConfig config, ClassLoader loader) {
        PythonFunction found = (PythonFunction) DECLARED.get(name);
        if (found == null) {
            throw new IllegalArgumentException("no Python function was declared as " + name);
        }
        return found;
    }
}
