"""Batches of rows that Spark writes as files, each shown once whatever fails in between.

Spark writes a batch into a hidden folder below the target. When it is complete a mark is put there, and the files are
moved out one by one, under the names that they have. A process that finds the mark continues moving; a process that
finds none writes the batch again. The folder itself is not renamed: object stores do that file by file, and a process
that is killed meanwhile would leave two halves of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def write_batch(frame: DataFrame, format: str, options: dict[str, str], partition_by: list[str], key: str) -> None:
    """Add the rows to the files below `options["path"]`; doing it twice with the same key is the same as once.

    That is, until `forget_batch` says that it need not be remembered.
    """
    path = options.pop("path").rstrip("/")
    files = _Files(frame.sparkSession, path)
    # Former versions renamed the folder when it was complete.
    batch = _renamed(key) if files.exists(_renamed(key)) else _written(key)
    if batch == _written(key) and not files.exists(f"{batch}/{_COMPLETE}"):
        files.delete(batch)
        writer = frame.write.format(format).options(**options).mode("overwrite")
        writer = writer.partitionBy(*partition_by) if partition_by else writer
        writer.save(f"{path}/{batch}")
        files.mark(f"{batch}/{_COMPLETE}")
    for name in list(files.below(batch)):
        files.move(f"{batch}/{name}", name)


def forget_batch(session: SparkSession, path: str, key: str) -> None:
    """The batch is known elsewhere to be written."""
    files = _Files(session, path.rstrip("/"))
    files.delete(_written(key))
    files.delete(_renamed(key))


# Spark passes over names that begin like this, as do other readers.
_COMPLETE = "_penstock_complete"


def _renamed(key: str) -> str:
    return f"_penstock-{key}"


def _written(key: str) -> str:
    return f"{_renamed(key)}-writing"


class _Files:
    """Files below a folder, by Spark's own way to reach them."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        jvm: Any = session._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        root = self._path(folder)
        self._files = root.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
        self._root = self._files.makeQualified(root)

    def _at(self, name: str) -> Any:
        return self._path(self._root, name)

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._at(name)))

    def mark(self, name: str) -> None:
        """Create an empty file, in one step."""
        self._files.create(self._at(name)).close()

    def rename(self, name: str, new_name: str) -> None:
        if not self._files.rename(self._at(name), self._at(new_name)):
            raise OSError(f"sink_to_spark: {self._at(name)} could not be renamed to {self._at(new_name)}")

    def move(self, name: str, new_name: str) -> None:
        """Where renaming is copying, a copy that was not completed may be there."""
        self._files.mkdirs(self._at(new_name).getParent())
        if self.exists(new_name):
            self._files.delete(self._at(new_name), False)
        self.rename(name, new_name)

    def below(self, name: str) -> Iterator[str]:
        """The files with rows in a folder and below it."""
        prefix = self._at(name).toString() + "/"
        found = self._files.listFiles(self._at(name), True)
        while found.hasNext():
            path = found.next().getPath()
            if not path.getName().startswith(("_", ".")):
                yield path.toString().removeprefix(prefix)

    def delete(self, name: str) -> None:
        self._files.delete(self._at(name), True)
