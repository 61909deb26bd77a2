"""The driver's side of sinks: commits, and what a job prints or collects."""
