"""Installs peers into .bench, each once: virtual environments, and what Maven builds."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / ".bench"
PYFLINK_PYTHON = "PENSTOCK_PYFLINK_PYTHON"
JDK = "openjdk-17-jdk-headless"
_STAMP = ".installed"
_PYTHONS = ("python3", "python3.12", "python3.11", "python3.10")
_IS_OLD_ENOUGH = "import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))"


class PeerUnavailableError(Exception):
    """A peer cannot be run here; says why."""


def pyflink_python() -> str:
    """The interpreter that PENSTOCK_PYFLINK_PYTHON names, else one with PyFlink in .bench, made when first needed."""
    chosen = os.environ.get(PYFLINK_PYTHON)
    if chosen:
        return chosen
    try:
        return venv_python("pyflink", "apache-flink")
    except PeerUnavailableError as error:
        raise PeerUnavailableError(f"{error}; set {PYFLINK_PYTHON} to a Python that has it") from None


def installed_pyflink() -> str:
    """As `pyflink_python`, but installs nothing."""
    python = BENCH / "pyflink" / "bin" / "python"
    chosen = os.environ.get(PYFLINK_PYTHON) or (str(python) if (BENCH / "pyflink" / _STAMP).exists() else None)
    if chosen is None:
        raise PeerUnavailableError(
            f"PyFlink is not installed in .bench/pyflink; set {PYFLINK_PYTHON} to a Python that has it, or let "
            "`python -m benchmarks word_count --words 1000 --peers pyflink-thread` install it"
        )
    return chosen


def venv_python(name: str, *packages: str) -> str:
    """The interpreter of .bench/`name`, which has `packages`."""
    venv = BENCH / name
    python = venv / "bin" / "python"

    def install() -> None:
        run([_old_enough_python(), "-m", "venv", "--clear", str(venv)])
        run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])

    install_once(venv, " ".join(packages), install)
    return str(python)


def _old_enough_python() -> str:
    """Peers have no packages for the newest interpreters."""
    for name in _PYTHONS:
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", _IS_OLD_ENOUGH]).returncode == 0:
            return found
    raise PeerUnavailableError(f"needs one of {', '.join(_PYTHONS[1:])}; install one")


def bench_folder() -> Path:
    """.bench, which git does not see."""
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / ".gitignore").write_text("*\n")
    return BENCH


def install_once(folder: Path, version: str, install: Callable[[], None]) -> None:
    """Call `install` unless `folder` already holds this version."""
    stamp = folder / _STAMP
    if stamp.exists() and stamp.read_text() in ("", version):
        return
    print(f"Installing into .bench/{folder.name} (once; some minutes)", file=sys.stderr)
    bench_folder()
    folder.mkdir(exist_ok=True)
    stamp.unlink(missing_ok=True)
    install()
    stamp.write_text(version)


def maven_classes(project: Path) -> str:
    """The class path of a Maven project, compiled into .bench when its files have changed."""
    folder = BENCH / project.name.replace("_", "-")

    def build() -> None:
        _require_jdk()
        shutil.rmtree(folder)
        goals = ["compile", "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'lib'}"]
        run(["mvn", "-q", "-B", "-f", str(project / "pom.xml"), f"-DbuildDirectory={folder / 'target'}", *goals])

    install_once(folder, _fingerprint(project), build)
    return os.pathsep.join([str(folder / "target" / "classes"), str(folder / "lib" / "*")])


def _fingerprint(project: Path) -> str:
    found = hashlib.sha256()
    for file in sorted(project.rglob("*")):
        if file.is_file():
            found.update(file.relative_to(project).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def java() -> str:
    """The JVM of JAVA_HOME, else of the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found:
        raise PeerUnavailableError("cannot run without Java; set JAVA_HOME or the PATH")
    return found


def _require_jdk() -> None:
    """A compiler and Maven; root gets them from Debian's packages if they are missing."""
    missing = [package for program, package in (("javac", JDK), ("mvn", "maven")) if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise PeerUnavailableError(f"cannot be built without {' and '.join(missing)}; install them")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-y", "-qq", *missing])


def run(command: list[str]) -> None:
    """Run to the end; its last words are the reason if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise PeerUnavailableError(f"cannot be installed: {error}") from error
    if done.returncode != 0:
        raise PeerUnavailableError(f"cannot be installed: {_reason(done.stdout, done.stderr)}")


def _reason(output: str, errors: str) -> str:
    """Maven's first error, which it writes to its output, else the last words."""
    of_maven = [line for line in output.splitlines() if line.startswith("[ERROR] Failed")]
    said = (errors.strip() or output.strip()).splitlines()
    return of_maven[0].removeprefix("[ERROR] ") if of_maven else said[-1] if said else "no message"
