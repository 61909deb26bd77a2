"""Python functions that Spark SQL carries out instead, where the result is provably the same.

`expressions` says what may be lowered and why it is the same; `purity` which functions may be looked into; `values` and
`tracing` find out what they do; `shapes` and `program` are the columns and elements that come of it; `data_frames` is
how those are written and read; `rules` says which operators of a job it is done for.
"""
