"""A group of workers for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from worker_groups import ONE_MACHINE, Group

from penstock.jobmaster.execution.worker_group import GroupSettings


@pytest.fixture
def group() -> Iterator[Callable[..., Group]]:
    started: list[Group] = []

    def start(workers: int, group_settings: GroupSettings = ONE_MACHINE) -> Group:
        started.append(Group(workers, group_settings))
        return started[-1]

    yield start
    for each in started:
        each.close()
