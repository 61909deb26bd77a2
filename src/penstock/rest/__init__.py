"""The REST API, in Flink's shapes: what serves it, and the client that the command line uses."""
