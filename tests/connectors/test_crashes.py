"""Exactly once although the job's process, and the server, are killed with SIGKILL."""

from __future__ import annotations

from crashes import run_kafka, run_postgres


def test_kafka_to_kafka_survives_kills_of_the_driver_and_the_broker(kafka, tmp_path):
    job = run_kafka(kafka, tmp_path, "inline", crashes=3, server_kills=1, records=4000, seed=1)
    assert job.kills == {"driver": 3, "server": 1}


def test_postgres_survives_kills_of_the_driver_and_the_server(postgres, tmp_path):
    job = run_postgres(postgres, tmp_path, "inline", crashes=4, server_kills=1, records=20_000, seed=2)
    assert job.kills == {"driver": 4, "server": 1}
