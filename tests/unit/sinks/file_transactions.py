"""A sink of one's own that writes exactly once: a file for each transaction, renamed when it is committed."""

from __future__ import annotations

import os
import uuid

from penstock.datastream.functions import TwoPhaseCommitSinkFunction


class FileTransactions(TwoPhaseCommitSinkFunction[str]):
    """Writes one line for each element. A transaction is the name of its file, hidden until it is committed."""

    def __init__(self, folder):
        self._folder = folder
        self._lines = {}

    def begin_transaction(self):
        return uuid.uuid4().hex

    def invoke(self, transaction, value, context):
        self._lines.setdefault(transaction, []).append(f"{value}\n")

    def pre_commit(self, transaction):
        lines = self._lines.pop(transaction, None)
        if lines is not None:
            with open(self._hidden(transaction), "w", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())

    def commit(self, transaction):
        if os.path.exists(self._hidden(transaction)):  # Not there: an empty transaction, or committed before.
            os.replace(self._hidden(transaction), os.path.join(self._folder, f"{transaction}.txt"))

    def abort(self, transaction):
        self._lines.pop(transaction, None)
        if os.path.exists(self._hidden(transaction)):
            os.remove(self._hidden(transaction))

    def _hidden(self, transaction):
        return os.path.join(self._folder, f".{transaction}")
