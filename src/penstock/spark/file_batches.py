"""Batches of rows that Spark writes as files, each shown once whatever fails in between.

Spark writes a batch into a hidden folder below the target. When it is complete the folder gets another name, and its
files are moved out one by one, under the names that they have. A process that finds that folder continues moving; a
process that finds none writes the batch again.
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
    ready = _ready(key)
    if not files.exists(ready):
        writer = frame.write.format(format).options(**options).mode("overwrite")
        writer = writer.partitionBy(*partition_by) if partition_by else writer
        writer.save(f"{path}/{ready}-writing")
        files.rename(f"{ready}-writing", ready)
    for name in list(files.below(ready)):
        files.move(f"{ready}/{name}", name)


def forget_batch(session: SparkSession, path: str, key: str) -> None:
    """The batch is known elsewhere to be written."""
    _Files(session, path.rstrip("/")).delete(_ready(key))


def _ready(key: str) -> str:
    # Spark passes over what begins like this, as do other readers.
    return f"_penstock-{key}"


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
