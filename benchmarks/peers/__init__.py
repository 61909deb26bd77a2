"""The benchmarks' programs written for other systems, and how those are installed into .bench."""
