"""Flink's built-in functions on values inside rows."""
