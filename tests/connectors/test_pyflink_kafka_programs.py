"""Programs written for PyFlink, old connectors and new ones, with every format, against a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.compat.pyflink_alias import AS_ON_PYFLINK, pyflink_as_penstock
from penstock.datastream.launch import Launch, launching

PROGRAM = str(Path(__file__).parent / "pyflink_kafka_program.py")


@pytest.mark.filterwarnings("ignore::penstock.common.notices.PenstockWarning")
@pytest.mark.filterwarnings("ignore:FlinkKafka:DeprecationWarning")
@pytest.mark.parametrize("reader", ["source", "consumer"])
@pytest.mark.parametrize("writer", ["sink", "producer"])
@pytest.mark.parametrize("schema", ["json", "csv", "avro"])
def test_rows_come_back_from_kafka(kafka, capsys, schema, writer, reader):
    arguments = (kafka.bootstrap_servers, kafka.topics.new(), schema, writer, reader)
    with launching(Launch({"execution.target": "inline", **AS_ON_PYFLINK})), pyflink_as_penstock():
        Program(PROGRAM, arguments=arguments).run()
    assert capsys.readouterr().out.splitlines() == ["1=to", "2=be, or", "3=not"]
