from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport

from penstock.spark.worker_daemon import read_archives_once


def test_archives_are_not_read_again_for_every_worker_and_new_ones_are_found(monkeypatch, tmp_path):
    # Put back what it changes, at the end.
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches)
    read_archives_once()
    for number in (1, 2):
        archive = tmp_path / f"archive-{number}.zip"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr(f"module_of_archive_{number}.py", f"value = {number}\n")
        monkeypatch.syspath_prepend(str(archive))
        importlib.invalidate_caches()
        found = importlib.import_module(f"module_of_archive_{number}")
        assert found.value == number
        del sys.modules[found.__name__]
    archive.unlink()
    importlib.invalidate_caches()  # It would look for the archive.
    assert isinstance(sys.path_importer_cache[str(archive)], zipimport.zipimporter)
