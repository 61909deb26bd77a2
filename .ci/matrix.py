"""Run tests on each pair of Python and PySpark of matrix.json that this machine can have: `make matrix`.

Each pair gets a virtual environment below .matrix, which stays for the next time. A Python that is not installed is
skipped, and the table at the end says so; the exit code is 1 if a pair that could run has failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MATRIX = json.loads((ROOT / ".ci" / "matrix.json").read_text(encoding="utf-8"))


def installed_python(version: str) -> Path | None:
    """From the PATH, else the newest patch release that pyenv has."""
    for candidate in _candidates(version):
        asked = [str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True)  # pyenv's shims may be there without a Python.
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return candidate
    return None


def _candidates(version: str) -> Iterator[Path]:
    if found := shutil.which(f"python{version}"):
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    patches = [path for path in pyenv.glob(f"{version}.*") if re.fullmatch(r"\d+\.\d+\.\d+", path.name)]
    for folder in sorted(patches, key=lambda path: int(path.name.rpartition(".")[2]), reverse=True):
        yield folder / "bin" / "python"


def prepared(python: Path, version: str, pyspark: str) -> Path | None:
    """The Python of an environment with this PySpark and the tests' tools; None if something cannot be installed."""
    folder = ROOT / ".matrix" / f"python-{version}-pyspark-{pyspark}"
    own = folder / "bin" / "python"
    if not own.exists() and subprocess.run([str(python), "-m", "venv", str(folder)]).returncode != 0:
        return None
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run([*pip, "-e", ".[dev]", f"pyspark=={pyspark}.*"], cwd=ROOT)
    return own if installed.returncode == 0 else None


def outcome_of(version: str, pyspark: str, tests: list[str], pytest_args: list[str]) -> str:
    python = installed_python(version)
    if python is None:
        return f"SKIPPED: there is no Python {version} on the PATH or in pyenv"
    print(f"\n=== Python {version} ({python}), PySpark {pyspark}\n", flush=True)
    own = prepared(python, version, pyspark)
    if own is None:
        return "FAILED: cannot be installed"
    run = subprocess.run([str(own), "-m", "pytest", *pytest_args, *tests], cwd=ROOT)
    return "passed" if run.returncode == 0 else f"FAILED: pytest ended with {run.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", metavar="3.X", help="only pairs with these")
    parser.add_argument("--pyspark", nargs="+", metavar="4.X", help="only pairs with these")
    parser.add_argument("--tests", nargs="+", default=MATRIX["tests"], metavar="PATH")
    parser.add_argument("--pytest-args", default="-q -n 2 --dist worksteal", metavar="WORDS")
    given = parser.parse_args()
    pairs = [
        (pair["python"], pair["pyspark"])
        for pair in MATRIX["pairs"]
        if pair["python"] in (given.python or [pair["python"]])
        and pair["pyspark"] in (given.pyspark or [pair["pyspark"]])
    ]
    outcomes = {pair: outcome_of(*pair, given.tests, given.pytest_args.split()) for pair in pairs}
    print()
    for (python, pyspark), outcome in outcomes.items():
        print(f"Python {python:5} PySpark {pyspark:5} {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
