"""What the REST API reports, as documents: Flink's names, where the thing is Flink's."""
