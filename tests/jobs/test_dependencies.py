"""What a job brings along reaches its functions, on both targets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from penstock.common.exceptions import ConfigurationError, EnvironmentSetupError, UnsupportedFeatureError
from penstock.datastream.functions import MapFunction
from penstock.spark.worker_packages import JOB_BRINGS_PACKAGES


@pytest.fixture
def module() -> str:
    """A module name that no other test uses: what a process has imported stays imported."""
    return f"shipped_{uuid.uuid4().hex[:8]}"


def import_answer(module: str) -> Any:
    def answer(_: int) -> Any:
        return __import__(module).answer()

    return answer


def results(env: Any, function: Any) -> list[Any]:
    return list(env.from_collection([1]).map(function).execute_and_collect())


class ReadCached(MapFunction):
    def __init__(self, name: str, inside: str = "") -> None:
        self._name = name
        self._inside = inside

    def open(self, runtime_context):
        self._path = runtime_context.get_distributed_cache().get_file(self._name)

    def map(self, value):
        file = Path(self._path, self._inside) if self._inside else Path(self._path)
        return file.read_text(), os.access(file, os.X_OK)


def test_functions_import_a_python_file(run_target, tmp_path, module):
    (tmp_path / f"{module}.py").write_text("def answer(): return 42")
    env = run_target()
    env.add_python_file(str(tmp_path / f"{module}.py"))
    assert results(env, import_answer(module)) == [42]


def test_functions_import_from_a_folder_and_find_its_data(run_target, tmp_path, module):
    (tmp_path / module).mkdir()
    (tmp_path / module / "data.txt").write_text("from a folder")
    (tmp_path / module / "__init__.py").write_text(
        "from pathlib import Path\ndef answer(): return Path(__file__).with_name('data.txt').read_text()"
    )
    env = run_target()
    env.add_python_file(str(tmp_path))
    assert results(env, import_answer(module)) == ["from a folder"]


def test_functions_import_from_a_zip(run_target, tmp_path, module):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as packed:
        packed.writestr(f"{module}.py", "def answer(): return 'zipped'")
    env = run_target(settings={"python.files": str(tmp_path / "lib.zip")})
    assert results(env, import_answer(module)) == ["zipped"]


def test_requirements_are_installed_without_a_network_once(run_target, tmp_path, module):
    packages = tmp_path / "packages"
    packages.mkdir()
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(packages / f"{module}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}.py", "def answer(): return 'installed'")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{module}==1.0\n")
    for _ in range(2):
        env = run_target(settings={"penstock.working-dir": str(tmp_path / "work")})
        env.set_python_requirements(str(requirements), str(packages))
        assert results(env, import_answer(module)) == ["installed"]
    assert len(list((tmp_path / "work" / "cache").glob("requirements-*/*"))) == 1


def test_requirements_that_pip_cannot_install_are_an_error_with_its_reason(run_target, tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "requirements.txt").write_text("no-such-package-anywhere\n")
    env = run_target(settings={"penstock.working-dir": str(tmp_path / "work")})
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "packages"))
    env.from_collection([1]).print()
    with pytest.raises(EnvironmentSetupError, match=r"pip cannot install .*requirements\.txt: ERROR: No matching dist"):
        env.execute()


def test_functions_find_cached_files_by_name(run_target, tmp_path):
    (tmp_path / "words.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.txt").write_text("inside")
    env = run_target()
    env.register_cached_file(str(tmp_path / "words.txt"), "words", True)
    env.register_cached_file(f"file://{tmp_path}/folder", "folder")
    assert results(env, ReadCached("words")) == [("hello", True)]
    assert results(env, ReadCached("folder", "inner.txt"))[0][0] == "inside"


def test_files_of_the_same_name_do_not_get_mixed_up_between_jobs(run_target, tmp_path):
    for content in ("first", "second"):
        (tmp_path / "data.txt").write_text(content)
        env = run_target(settings={"pipeline.cached-files": f"name:data,path:{tmp_path}/data.txt"})
        assert results(env, ReadCached("data"))[0][0] == content


def test_archives_are_unpacked(run_target, tmp_path):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as packed:
        packed.writestr("deep/data.txt", "unpacked")
    env = run_target()
    env.add_python_archive(str(tmp_path / "archive.zip"))
    env.add_python_archive(str(tmp_path / "archive.zip"), "again")
    assert results(env, ReadCached("archive.zip", "deep/data.txt"))[0][0] == "unpacked"
    assert results(env, ReadCached("again", "deep/data.txt"))[0][0] == "unpacked"
    if run_target.target == "spark":  # The target inline does not leave the working folder of the program.
        assert results(env, lambda _: Path("again/deep/data.txt").read_text()) == ["unpacked"]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_workers_of_a_job_with_packages_of_its_own_are_forked_without_numpy(run_target, tmp_path, module, mode):
    """Otherwise it could not bring another version of it: a process loads only one."""

    def was_told(_: int) -> bool:
        return JOB_BRINGS_PACKAGES in os.environ

    assert results(run_target(settings={"execution.runtime-mode": mode}), was_told) == [False]
    (tmp_path / f"{module}.py").touch()
    env = run_target(settings={"execution.runtime-mode": mode})
    env.add_python_file(str(tmp_path / f"{module}.py"))
    assert results(env, was_told) == [run_target.target == "spark"]


@pytest.mark.spark
def test_another_python_cannot_be_chosen_once_spark_runs(spark):
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_python_executable("/usr/bin/other-python")
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"'/usr/bin/other-python', but Spark has started with .*before the"):
        env.execute()


@pytest.mark.spark
def test_jars_cannot_be_added_once_spark_runs(spark, tmp_path):
    from penstock.datastream import StreamExecutionEnvironment

    (tmp_path / "some.jar").touch()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_jars(f"file://{tmp_path}/some.jar")
    env.from_collection([1]).print()
    message = r"Spark has started without .*some\.jar; call add_jars before .*spark\.jars="
    with pytest.raises(ConfigurationError, match=message):
        env.execute()


@pytest.mark.spark
def test_a_python_inside_an_archive_is_refused(spark, tmp_path):
    from penstock.datastream import StreamExecutionEnvironment

    zipfile.ZipFile(tmp_path / "venv.zip", "w").close()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(str(tmp_path / "venv.zip"), "venv")
    env.set_python_executable("venv/bin/python")
    env.from_collection([1]).print()
    with pytest.raises(UnsupportedFeatureError, match=r"a Python from an archive .*spark\.archives"):
        env.execute()


_ON_A_CLUSTER = """
import sys
from pathlib import Path
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

folder = sys.argv[1]
env = StreamExecutionEnvironment.get_execution_environment(
    Configuration.from_dict({"spark.master": "local-cluster[1,1,1024]", "penstock.working-dir": folder})
)
env.add_python_file(f"{folder}/of_the_job.py")
env.add_python_archive(f"{folder}/archive.zip", "unpacked")

def look(_):
    import penstock, of_the_job
    return ".zip" in penstock.__path__[0], of_the_job.answer(), Path("unpacked/data.txt").read_text()

print(list(env.from_collection([1, 2]).map(look).set_parallelism(2).execute_and_collect()))
"""


@pytest.mark.slow
@pytest.mark.spark
def test_executors_of_a_cluster_get_the_package_and_all_dependencies(tmp_path):
    (tmp_path / "of_the_job.py").write_text("def answer(): return 42")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as packed:
        packed.writestr("data.txt", "unpacked")
    (tmp_path / "job.py").write_text(_ON_A_CLUSTER)
    done = subprocess.run([sys.executable, str(tmp_path / "job.py"), str(tmp_path)], capture_output=True, text=True)
    # Spark keeps the executors' folders inside its own installation and never removes them.
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)
    assert done.stdout.splitlines() == [str([(True, 42, "unpacked")] * 2)], done.stderr
