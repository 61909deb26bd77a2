"""The only package that knows Spark: sessions, and the stages of an epoch as one Spark job."""
