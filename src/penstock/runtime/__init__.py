"""One subtask: chains, operators, windowing, timers, watermarks, state. Plain Python, no Spark."""
