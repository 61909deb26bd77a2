from __future__ import annotations

import gc

import pytest

from penstock.runtime.rows import FAILURE, Row
from penstock.spark import stage_function
from penstock.spark.stage_function import StageFunction


@pytest.fixture
def fresh_worker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stage_function, "_is_settled", False)
    yield
    gc.unfreeze()


def test_a_worker_leaves_what_it_has_loaded_out_of_collections_after_its_first_task(fresh_worker):
    before = gc.get_freeze_count()
    failed = Row(FAILURE, 0, 0, 0, 0, b"")
    assert list(StageFunction(None, None, frozenset())(0, [failed])) == [failed]
    assert gc.get_freeze_count() > before


def test_a_worker_does_that_once(fresh_worker):
    stage_function.settle()
    gc.unfreeze()
    stage_function.settle()
    assert gc.get_freeze_count() == 0
