"""Exactly once although the job's process, and the server, are killed with SIGKILL."""

from __future__ import annotations

from crashes import run_kafka, run_postgres


def test_kafka_to_kafka_survives_kills_of_the_driver_and_the_broker(kafka, tmp_path):
    job = run_kafka(kafka, tmp_path, "inline", crashes=2, server_kills=1, records=2500, seed=1)
    assert job.kills["driver"] >= 1  # A quick machine may be done before the last one.


def test_postgres_survives_kills_of_the_driver_and_the_server(postgres, tmp_path):
    job = run_postgres(postgres, tmp_path, "inline", crashes=4, server_kills=1, records=20_000, seed=2)
    assert job.kills["driver"] >= 2
