"""Penstock: Flink's stream processing model on Spark, in Python."""

from __future__ import annotations

from penstock.common.offered_names import offer

__version__ = "0.1.0"

offer(
    {
        f"{name}Row{direction}Schema": f"penstock.datastream.formats.{name.lower()}"
        for name in ("Avro", "Csv", "Json")
        for direction in ("Deserialization", "Serialization")
    }
)
