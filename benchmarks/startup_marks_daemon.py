"""Penstock's Python daemon with marks; see benchmarks/startup_marks.py."""

from __future__ import annotations

from benchmarks import startup_marks as marks

if __name__ == "__main__":
    marks.mark(marks.DAEMON)
    import gc

    from pyspark import worker
    from pyspark.daemon import manager

    import penstock.spark.worker_daemon  # noqa: F401  What the daemon loads.
    from penstock.runtime.task_host import TaskHost

    marks.marked(worker, "read_command", before=marks.TASK)
    marks.marked(TaskHost, "run_task", before=marks.OPERATORS)
    gc.collect()
    gc.freeze()
    marks.mark(marks.DAEMON_READY)
    manager()
