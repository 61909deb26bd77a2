"""An archive of Spark's loaded classes (Java's class data sharing), with which Java starts in half the time.

It is made once for each Spark, Java and set of options, in the user's cache folder: `penstock run` has a process of low
priority make it, after the first job that ran without one. Java itself checks that an archive fits, and starts without
it if not. Where none can be made, jobs only start more slowly.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError
from penstock.spark.java import find_java
from penstock.spark.spark_home import spark_home

OFF = "PENSTOCK_NO_CLASS_ARCHIVE"
"""In the environment: neither use nor make an archive."""
_MAKING_LASTS_S = 600
_TRIED_AGAIN_AFTER_S = 24 * 3600
# Java says on its standard error what it does not like about an archive; it works without.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive_option(java_options: str) -> str:
    """Options that make Java use the archive; empty if there is none."""
    path = archive_path(java_options)
    return f'"-XX:SharedArchiveFile={path}" {_QUIET}' if path is not None and path.exists() else ""


def archive_path(java_options: str) -> Path | None:
    """Where the archive is, or would be; None if there cannot be one."""
    if os.environ.get(OFF):
        return None
    try:
        parts = [_identity(find_java()), _identity(spark_home() / "jars"), java_options]
    except (EnvironmentSetupError, OSError):
        return None  # The next start of Java reports what is missing.
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / f"spark-classes-{name}.jsa"


def _identity(path: Path) -> str:
    """Changes when another version is installed in the same place."""
    resolved = path.resolve()
    return f"{resolved} {resolved.stat().st_mtime_ns}"


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def make_in_background(java_options: str) -> bool:
    """Have another process make the archive; False if it exists, is being made, or cannot be made."""
    path = archive_path(java_options)
    if path is None or path.exists() or not _is_mine_to_make(path):
        return False
    subprocess.Popen(
        [sys.executable, "-m", __name__, str(path), java_options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: os.nice(19),
    )
    return True


def _is_mine_to_make(path: Path) -> bool:
    """True for one process. What was begun and never came to an end is tried again a day later."""
    mark = path.with_suffix(".making")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if mark.exists() and time.time() - mark.stat().st_mtime > _TRIED_AGAIN_AFTER_S:
            mark.unlink()
        mark.touch(exist_ok=False)
    except OSError:  # Somebody else is at it, or has failed; or there is no place to write.
        return False
    return True


def make(path: Path, java_options: str) -> None:
    """Run a small job like an epoch, and have Java write down the classes that it needed."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from penstock.common.configuration import Configuration
    from penstock.spark.session import get_context

    options = f'{java_options} "-XX:ArchiveClassesAtExit={unfinished}" {_QUIET}'
    settings = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": options}
    context = get_context(Configuration.from_dict(settings))
    java = context._gateway.proc  # type: ignore[union-attr]
    for _ in range(3):
        context.parallelize(range(2), 2).map(lambda number: (number, b"")).partitionBy(2).values().collect()
    context.broadcast(b"").destroy()
    context.stop()
    java.stdin.close()
    java.wait()  # It writes the archive when it ends.
    unfinished.rename(path)
    path.with_suffix(".making").unlink(missing_ok=True)


def main(path: str, java_options: str) -> None:
    # Nobody waits for this process: if it hangs, it must end by itself. Its Java ends with it, whose input it holds.
    signal.alarm(_MAKING_LASTS_S)
    make(Path(path), java_options)


if __name__ == "__main__":
    main(*sys.argv[1:])
