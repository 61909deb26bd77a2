"""The folder of a job's files while it runs: spools, and checkpoints that nobody keeps."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.local_folders import new_local_folder
from penstock.files.locations import is_local, local_path


@contextmanager
def working_folder(job_id: str, config: Configuration) -> Iterator[Path]:
    """A new folder, gone at the end of the job, even if the program ends before it.

    What a killed process leaves is removed by the next one, unless the folder was chosen by the user: then it may
    be on a file system that others share, where a lock need not say which process is alive.
    """
    parent = config.get_optional(keys.WORKING_DIR)
    if parent is None:
        own = new_local_folder(Path(tempfile.gettempdir()), f"job-{job_id[:8]}")
        try:
            yield own
        finally:
            shutil.rmtree(own, ignore_errors=True)  # A process of the job may be writing to it at this moment.
        return
    if not is_local(parent):
        raise ConfigurationError(
            f"{keys.WORKING_DIR.key} is '{parent}', but a job's working files need a folder on a mounted disk; "
            f"for checkpoints elsewhere set {keys.CHECKPOINT_DIR.key}"
        )
    chosen = Path(local_path(parent))
    chosen.mkdir(parents=True, exist_ok=True)
    prefix = f"penstock-{job_id[:8]}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=chosen, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
