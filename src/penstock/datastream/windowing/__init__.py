"""The parts of `penstock.datastream.window`: windows, assigners, triggers and evictors."""
