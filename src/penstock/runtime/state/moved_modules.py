"""The present names of modules whose classes are named in savepoints of earlier versions.

Splits, positions, states of writers and committables are pickled, and a pickle names the module of each class. If you
move a module that has such classes, add it here, and never remove an entry.
"""

from __future__ import annotations

_CONNECTORS = "penstock.datastream.connectors"
_JOB_MASTER = "penstock.jobmaster"

# (earlier package, package today) -> modules, as `name` or `earlier:today`.
_MOVED = {
    (_JOB_MASTER, f"{_JOB_MASTER}.sources"): """
        source_coordinator split_coordinator received_coordinator function_coordinator function_receiver
        socket_receiver element_spool spool source_setup watermark_alignment
    """,
    (_JOB_MASTER, f"{_JOB_MASTER}.sinks"): "sink_commits",
    (_CONNECTORS, f"{_CONNECTORS}.kafka"): """
        kafka_committer:committer kafka_deserialization:deserialization kafka_enumerator:enumerator
        kafka_offsets:offsets kafka_protocol:protocol kafka_reader:reader kafka_records:records
        kafka_settings:settings kafka_sink:sink kafka_source:source kafka_transactions:transactions
        kafka_writer:writer
    """,
    (_CONNECTORS, f"{_CONNECTORS}.file_system"): """
        file_committer:committer file_compaction:compaction file_formats:formats file_parts:bucketing
        file_sink:sink file_source:source file_writer:writer input_files part_files line_encoder
        date_pattern text_lines
    """,
    (_CONNECTORS, f"{_CONNECTORS}.jdbc"): """
        jdbc_committer:committer jdbc_databases:databases jdbc_statements:statements jdbc_writer:writer
    """,
    (_CONNECTORS, f"{_CONNECTORS}.hybrid_source"): """
        hybrid_entries:entries hybrid_enumerator:enumerator hybrid_protocol:protocol hybrid_reader:reader
    """,
    (_CONNECTORS, f"{_CONNECTORS}.spark"): "data_frame data_frame_stream batch_spool spark_sink:sink",
    (_CONNECTORS, f"{_CONNECTORS}.support"): "split_dealing split_reading batch_buffer refused_records",
}


def module_today(module: str) -> str:
    """The present name of a module, given its name in a pickle."""
    return _TODAY.get(module, module)


def _today() -> dict[str, str]:
    found = {}
    for (before, now), names in _MOVED.items():
        for name in names.split():
            earlier, _, today = name.partition(":")
            found[f"{before}.{earlier}"] = f"{now}.{today or earlier}"
    return found


_TODAY = _today()
