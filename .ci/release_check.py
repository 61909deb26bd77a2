"""Check what a release would consist of: `make release-check`.

Builds the source distribution and, from it, the wheel; checks their metadata and contents; installs the wheel into an
empty environment of each Python of matrix.json that is here, and runs programs there that see nothing of this folder.
Whatever cannot be run here is skipped, and the table at the end says so; the exit code is 1 if something has failed.
"""

from __future__ import annotations

import argparse
import email
import email.message
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from matrix import MATRIX, ROOT, installed_python

DIST = ROOT / "dist"
PYTHONS = sorted({pair["python"] for pair in MATRIX["pairs"]}, key=lambda version: int(version.partition(".")[2]))
DEMO_WITHIN_S = 300

WORD_COUNT = """
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))
words = env.from_collection(["to be or", "not to be"]).flat_map(lambda line: line.split())
counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
assert sorted(counts.execute_and_collect())[-1] == ("to", 2)
"""


class CheckFailedError(Exception):
    """Something is not as a release must be."""


class SkippedError(Exception):
    """This machine lacks something."""


def run(*words: object, cwd: Path = ROOT, timeout_s: int = 1800) -> str:
    """The program's output; raises CheckFailedError with its end if it fails."""
    # Nothing of this folder: what is installed must be enough.
    given = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    if ended.returncode != 0:
        raise CheckFailedError(f"{' '.join(map(str, words))} ended with {ended.returncode}:\n{ended.stdout[-2000:]}")
    return ended.stdout


def new_environment(python: Path | str, folder: Path) -> Path:
    """The Python of an empty virtual environment."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def pip_install(python: Path, *packages: object) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)


# --- checks -----------------------------------------------------------------------------------------------------------


def check_version(metadata: email.message.Message) -> str:
    """One version everywhere, and it is what the change log has, or what comes after it."""
    version = str(metadata["Version"])
    declared = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/penstock/__init__.py").read_text(), re.MULTILINE)
    if declared is None or declared[1] != version:
        raise CheckFailedError(
            f"the metadata has version {version}, penstock.__version__ is {declared and declared[1]}"
        )
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if version not in headings:
        raise CheckFailedError(f"CHANGELOG.md has no section {version}")
    if headings[0] != version:
        return f"{version}, but CHANGELOG.md begins with '{headings[0]}': not ready to be released"
    return version


def check_metadata(metadata: email.message.Message) -> str:
    """Classifiers name the Pythons that are tested, and no others; the oldest of them is the one required."""
    named = {
        found[1]
        for each in metadata.get_all("Classifier", [])
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each))
    }
    if named != set(PYTHONS):
        raise CheckFailedError(f"classifiers name Python {sorted(named)}, but matrix.json has {PYTHONS}")
    if metadata["Requires-Python"] != f">={PYTHONS[0]}":
        raise CheckFailedError(f"Requires-Python is {metadata['Requires-Python']}, the matrix begins with {PYTHONS[0]}")
    return f"{len(metadata.get_all('Requires-Dist', []))} requirements, Python {PYTHONS[0]} to {PYTHONS[-1]}"


def check_description(tools: Path, wheel: Path, sdist: Path) -> str:
    """What a package index shows can be rendered."""
    run(tools, "-m", "twine", "check", "--strict", wheel, sdist)
    return "can be rendered"


def check_contents(wheel: Path, sdist: Path) -> str:
    """Everything of src/penstock is in the wheel, and nothing else; the sources have the tests, too."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    committed = run("git", "ls-files", "src/penstock").splitlines()
    expected = {name.removeprefix("src/") for name in committed if (ROOT / name).is_file()}
    if packed != expected:
        raise CheckFailedError(f"missing in the wheel or not committed: {sorted(packed ^ expected)[:10]}")
    with tarfile.open(sdist) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    if missing := {"LICENSE", "README.md", "pyproject.toml", "tests/conftest.py"} - names:
        raise CheckFailedError(f"missing in the source distribution: {sorted(missing)}")
    return f"{len(packed)} files, {wheel.stat().st_size // 1024:,} kB"


def check_installed(version: str, wheel: Path, with_demo: bool, folder: Path) -> str:
    """The wheel alone is enough for the command line, a job without Spark, PyFlink's imports and the demo on Spark."""
    found = installed_python(version)
    if found is None:
        raise SkippedError(f"there is no Python {version} on the PATH or in pyenv")
    python = new_environment(found, folder / f"python-{version}")
    pip_install(python, wheel)
    run(python, "-m", "pip", "check")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    said = run(python.parent / "penstock", "--version", cwd=elsewhere).strip()
    run(python, "-c", WORD_COUNT, cwd=elsewhere)
    if not with_demo:
        return f"{said}, a job"
    counted = run(python, "-m", "penstock.demo", cwd=elsewhere, timeout_s=DEMO_WITHIN_S)
    windows = [line for line in counted.splitlines() if re.search(r"\(\w+,\d+\)", line)]
    if not windows:
        raise CheckFailedError(f"the demo has counted nothing:\n{counted[-2000:]}")
    return f"{said}, a job, the demo ({len(windows)} lines)"


def check_image() -> str:
    """The image can be built, and runs the demo and a job manager."""
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode != 0:
        raise SkippedError("there is no Docker daemon")
    run("docker", "build", "-q", "-t", "penstock-release-check", "-f", "deploy/Dockerfile", ".")
    run("docker", "run", "--rm", "penstock-release-check", "python", "-m", "penstock.demo", timeout_s=DEMO_WITHIN_S)
    start = "penstock jobmanager start --daemon && penstock jobmanager status && penstock jobmanager stop"
    run("docker", "run", "--rm", "penstock-release-check", "sh", "-c", start, timeout_s=DEMO_WITHIN_S)
    return "built; the demo and a job manager have run"


def check_manifest(tools: Path) -> str:
    """The manifest has the form that Kubernetes' own schemas ask for."""
    pip_install(tools, "kubernetes-validate")
    said = run(tools.parent / "kubernetes-validate", "--strict", ROOT / "deploy" / "kubernetes.yaml")
    return f"{len(said.splitlines())} objects fit the schema"


# --- all of them ------------------------------------------------------------------------------------------------------


def build(tools: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, in dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(tools, "-m", "build", "--outdir", DIST)
    [wheel], [sdist] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def metadata_of(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def outcome_of(check: Callable[[], str]) -> str:
    try:
        return f"passed   {check()}"
    except SkippedError as reason:
        return f"SKIPPED  {reason}"
    except (CheckFailedError, subprocess.TimeoutExpired) as failure:
        return f"FAILED   {failure}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="*", default=PYTHONS, metavar="3.X", help="install on these only")
    parser.add_argument("--without-demo", action="store_true", help="do not start Spark")
    given = parser.parse_args()
    outcomes: dict[str, str] = {}

    def check(what: str, action: Callable[[], str]) -> None:
        print(f"{what} ...", flush=True)
        outcomes[what] = outcome_of(action)

    with tempfile.TemporaryDirectory(prefix="penstock-release-") as name:
        folder = Path(name)
        tools = new_environment(sys.executable, folder / "tools")
        pip_install(tools, "build", "twine")
        print("Building the source distribution and the wheel", flush=True)
        wheel, sdist = build(tools)
        metadata = metadata_of(wheel)
        check("version", lambda: check_version(metadata))
        check("metadata", lambda: check_metadata(metadata))
        check("description", partial(check_description, tools, wheel, sdist))
        check("contents", lambda: check_contents(wheel, sdist))
        for version in given.python:
            check(f"Python {version}", partial(check_installed, version, wheel, not given.without_demo, folder))
        check("manifest", lambda: check_manifest(tools))
        check("image", check_image)
    print()
    for what, outcome in outcomes.items():
        print(f"{what:12} {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
