"""Run the programs in `programs/` on PyFlink and record what they print, next to each as `.out`.

    python tests/pyflink/run_programs.py [name ...]      in a Python that has apache-flink installed

Without names, the programs that have no recorded output are run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def output_of(program: Path, python: str) -> str:
    # PyFlink starts its workers with the first `python` of the PATH.
    environment = {**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run([python, str(program)], env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{program.name} failed on PyFlink:\n{ended.stderr[-3000:]}")
    return ended.stdout


def main(names: list[str]) -> None:
    for program in sorted(PROGRAMS.glob("*.py")):
        recorded = program.with_suffix(".out")
        if program.stem in names or (not names and not recorded.exists()):
            recorded.write_text(output_of(program, sys.executable), encoding="utf-8")
            print(program.stem, recorded.read_text(encoding="utf-8"), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
