"""Throughput of the same programs on Penstock and on its peers: `python -m benchmarks --help`."""
