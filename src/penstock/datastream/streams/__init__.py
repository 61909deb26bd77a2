"""The kinds of streams. `penstock.datastream.data_stream` has all their names."""
