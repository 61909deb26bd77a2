"""Small PyFlink programs, one for each behaviour, print here what they print on PyFlink.

`programs/*.out` holds what PyFlink 2.3 printed (by `run_programs.py`). With PENSTOCK_PYFLINK_PYTHON set to a Python
that has apache-flink, every program runs there as well and must print the recorded lines.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.compat.pyflink_alias import AS_ON_PYFLINK, pyflink_as_penstock
from penstock.datastream.launch import Launch, launching

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from run_programs import output_of  # noqa: E402

PROGRAMS = sorted((HERE / "programs").glob("*.py"))
PYFLINK = os.environ.get("PENSTOCK_PYFLINK_PYTHON")


def recorded(program: Path) -> list[str]:
    return program.with_suffix(".out").read_text(encoding="utf-8").splitlines()


# Some set what has no effect here, as programs do.
@pytest.mark.filterwarnings("ignore::penstock.common.notices.PenstockWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_prints_what_it_prints_on_pyflink(program, capsys):
    with launching(Launch({"execution.target": "inline", **AS_ON_PYFLINK})), pyflink_as_penstock():
        Program(str(program)).run()
    assert capsys.readouterr().out.splitlines() == recorded(program)


@pytest.mark.skipif(
    PYFLINK is None, reason="needs PyFlink: set PENSTOCK_PYFLINK_PYTHON to a Python that has apache-flink"
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_the_recorded_output_is_pyflinks(program):
    assert output_of(program, str(PYFLINK)).splitlines() == recorded(program)
