"""What earlier versions have saved can be restored, and the job continues from it as it would have then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from golden_runs import lines_after

HERE = Path(__file__).parent
KEPT = sorted(path.with_suffix("").with_suffix("") for path in HERE.glob("*/*.after.txt"))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
@pytest.mark.parametrize("kept", KEPT, ids=[f"{kept.parent.name}-{kept.name}" for kept in KEPT])
def test_job_continues_from_what_an_earlier_version_saved(tmp_path, kept, parallelism, backend):
    saved = tmp_path / "moved"
    shutil.copytree(kept, saved)
    expected = kept.with_name(f"{kept.name}.after.txt").read_text(encoding="utf-8").splitlines()
    assert lines_after(saved, parallelism, tmp_path / "lines", {"state.backend.type": backend}) == expected


def test_every_kind_is_kept_of_every_version():
    for version in {kept.parent for kept in KEPT}:
        assert {kept.name for kept in KEPT if kept.parent == version} == {"canonical", "native", "checkpoint"}
    assert KEPT


def test_golden_savepoints_are_small():
    for version in {kept.parent for kept in KEPT}:
        assert sum(path.stat().st_size for path in version.rglob("*") if path.is_file()) < 200_000
