"""Files of a job, by name, in one folder that the driver and all executors reach."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FolderStateStorage:
    """Snapshot files in a folder. A file appears under its name only when it is complete."""

    folder: str

    def write(self, name: str, content: bytes) -> None:
        path = Path(self.folder, name)
        partial = path.with_name(f"{name}.{os.getpid()}.partial")
        partial.write_bytes(content)
        os.replace(partial, path)

    def read(self, name: str) -> bytes:
        return Path(self.folder, name).read_bytes()

    def delete(self, name: str) -> None:
        """Remove a file that nobody needs; one that cannot be removed now is only in the way."""
        with contextlib.suppress(OSError):
            Path(self.folder, name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        return [path.name for path in Path(self.folder).iterdir()]
