"""Random programs do the same in generated loops, on columns, combined and with state on disk as when all is called.

More of them: `python -m tests.random_programs`.
"""

from __future__ import annotations

import random

import pytest
from tests.random_programs.comparison import WAYS, Way, check, difference, run
from tests.random_programs.generator import Program, Step, program_of

GROUPS, PROGRAMS = 8, 25


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_programs_do_the_same_in_all_ways(group: int) -> None:
    for seed in range(group * PROGRAMS, (group + 1) * PROGRAMS):
        found = check(program_of(seed), random.Random(seed).sample(WAYS, 2))
        assert found is None, found


def test_most_programs_have_results_and_effects_and_some_fail() -> None:
    """Otherwise there would be nothing to compare."""
    outcomes = [run(program_of(seed), Way()) for seed in range(60)]
    assert sum(bool(each.results) for each in outcomes) > 30
    assert sum(bool(each.effects) for each in outcomes) > 30
    assert any(each.error is not None for each in outcomes)
    assert not any("random_programs" in (each.error or "") for each in outcomes)  # None fails for being no program.


def test_a_difference_is_found_and_the_program_made_small() -> None:
    """A program that looks at its own frame does something else when it is inlined."""
    looks = (
        "import sys\nLOOK = sys._getframe\n\n\ndef looks(v):\n    return v if LOOK().f_code.co_name == 'looks' else -v"
    )
    kind = next(each for each in map(program_of, range(100)) if each.kind.name == "number").kind
    steps = (Step("", "s.map(lambda v: v + 1)"), Step(looks, "s.map(looks)"), Step("", "s.map(lambda v: v * 2)"))
    program = Program(0, kind, ("1", "2", "3"), steps)
    found = check(program, [Way(inlines=True)])
    assert found is not None and "s.map(looks)" in found and "v * 2" not in found
    assert difference(program, Way(columns=True)) is None
