"""A sink that writes to a server, in a job that can fail at any point."""

from __future__ import annotations

import gc
import pickle
import threading

from sink_job import SinkJob

from penstock.jobmaster.sinks.sink_commits import SinkCommits


class ServerSinkJob(SinkJob):
    """As SinkJob; after a crash the server keeps what the writers left there."""

    def __init__(self, sink, tmp_path, element_of=str, parallelism=1):
        super().__init__(sink, tmp_path, element_of, parallelism)

    def crash(self, parallelism=None):
        """The processes are killed: connections end, and nothing is aborted or closed."""
        number = len(self.operators)
        # The threads of a killed process do nothing any more; here one would claim its transaction late.
        for thread in threading.enumerate():
            if thread.name == "kafka-producer-ahead":
                thread.join()
        self.operators = []
        self.commits = SinkCommits(self._graph)
        gc.collect()  # Operators are parts of cycles, and clients have threads.
        return self._restart(parallelism or number)

    def commit_again(self):
        """Commit what belongs to the last checkpoint."""
        self.commits.commit(pickle.loads(self.last.committables))
