"""DataFrames as streams, and streams written with Spark's own writers."""
