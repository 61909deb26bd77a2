"""Python functions that Spark SQL carries out instead, where the result is provably the same.

`expressions` says what may be lowered and why the result is the same; `purity` says which functions may be examined;
`values` and `tracing` find out what they do; `shapes` and `program` are the resulting columns and elements;
`data_frames` writes and reads those; `rules` says which operators of a job are lowered.
"""
