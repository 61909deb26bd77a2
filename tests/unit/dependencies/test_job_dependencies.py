from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, InvalidProgramError, UnsupportedFeatureError
from penstock.common.notices import PenstockWarning
from penstock.datastream.dependencies import CachedFile, JobDependencies
from penstock.jobmaster.archives import files_below, pack, unpack
from penstock.jobmaster.local_dependencies import LocalDependencies


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.py", "b.zip", "c.jar", "d.txt", "requirements.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "packages").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


def test_settings_add_to_what_the_program_asked_for(folder):
    dependencies = JobDependencies()
    dependencies.add_python_file("a.py")
    config = Configuration.from_dict(
        {
            "python.files": "packages, b.zip",
            "python.archives": "b.zip#lib,b.zip",
            "python.requirements": "requirements.txt#packages",
            "pipeline.jars": f"c.jar;file://{folder}/c.jar",
            "pipeline.cached-files": "name:d,path:'d.txt',executable:true;name:far,path:hdfs://host/far.txt",
        }
    )
    merged = dependencies.with_settings(config)
    assert merged.python_files == [str(folder / name) for name in ("a.py", "packages", "b.zip")]
    assert merged.archives == [(str(folder / "b.zip"), "lib"), (str(folder / "b.zip"), "b.zip")]
    assert merged.requirements == (str(folder / "requirements.txt"), str(folder / "packages"))
    assert merged.jars == [str(folder / "c.jar")] * 2
    assert merged.cached_files == {
        "d": CachedFile(str(folder / "d.txt"), True),
        "far": CachedFile("hdfs://host/far.txt", False),
    }
    assert dependencies.archives == [] and len(dependencies.python_files) == 1


def test_requirements_in_code_are_stronger_than_the_setting(folder):
    dependencies = JobDependencies()
    dependencies.set_python_requirements("d.txt", None)
    config = Configuration.from_dict({"python.requirements": "requirements.txt"})
    assert dependencies.with_settings(config).requirements == (str(folder / "d.txt"), None)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("python.files", "gone", "Python file"),
        ("python.archives", "gone#x", "Python archive"),
        ("python.requirements", "gone", "requirements file"),
        ("pipeline.cached-files", "name:x,path:gone", "cached file"),
    ],
)
def test_what_does_not_exist_is_named_when_the_job_is_to_run(folder, key, value, what):
    with pytest.raises(InvalidProgramError, match=f"the job's {what} '{folder}/gone' is not there"):
        JobDependencies().with_settings(Configuration.from_dict({key: value}))


def test_files_may_be_made_after_they_were_named(folder):
    dependencies = JobDependencies()
    dependencies.add_python_file("later.py")
    dependencies.add_python_archive("later.zip", None)
    dependencies.set_python_requirements("later.txt", None)
    for name in ("later.py", "later.zip", "later.txt"):
        (folder / name).touch()
    assert dependencies.with_settings(Configuration()).requirements == (str(folder / "later.txt"), None)


def test_a_jar_that_is_not_there_is_left_out_with_one_line(folder):
    dependencies = JobDependencies()
    with pytest.warns(PenstockWarning, match="there is no jar 'file:///gone/kafka.jar'; it is left out"):
        dependencies.add_jars("file:///gone/kafka.jar", "hdfs://host/there.jar")
    with pytest.warns(PenstockWarning, match="there is no jar 'gone.jar'"):
        merged = dependencies.with_settings(Configuration.from_dict({"pipeline.jars": "gone.jar"}))
    assert merged.jars == ["hdfs://host/there.jar"]


def test_a_cached_file_without_a_name_is_refused(folder):
    with pytest.raises(ConfigurationError, match=r"pipeline\.cached-files: 'path:d.txt' must have a name and a path"):
        JobDependencies().with_settings(Configuration.from_dict({"pipeline.cached-files": "path:d.txt"}))


def test_names_of_cached_files_and_archives_are_given_once(folder):
    dependencies = JobDependencies()
    dependencies.register_cached_file("d.txt", "d", False)
    dependencies.add_python_archive("b.zip", None)
    with pytest.raises(InvalidProgramError, match="register_cached_file: 'd' is registered already"):
        dependencies.register_cached_file("a.py", "d", False)
    with pytest.raises(InvalidProgramError, match=r"add_python_archive: there is a folder 'b.zip' already"):
        dependencies.add_python_archive("b.zip", None)


def test_only_local_files_can_be_cached_without_spark(folder):
    dependencies = JobDependencies()
    dependencies.register_cached_file("hdfs://host/far.txt", "far", False)
    with pytest.raises(UnsupportedFeatureError, match=r"'hdfs://host/far.txt', 'far'.*only local files can be read"):
        LocalDependencies(dependencies, Configuration())


def test_packing_is_by_content_and_unpacking_gives_it_back(folder, tmp_path):
    first = pack(files_below(folder), tmp_path)
    first_name = first.name
    first.unlink()
    assert pack(files_below(folder), tmp_path).name == first_name
    unpacked = unpack(str(tmp_path / first_name), tmp_path / "unpacked")
    assert (unpacked / "d.txt").read_text() == "d.txt"
    (folder / "d.txt").write_text("changed")
    assert pack([(folder / "d.txt", "d.txt")], tmp_path).name != first_name


def test_what_is_no_archive_is_refused(folder):
    with pytest.raises(InvalidProgramError, match=r"b\.zip cannot be unpacked .*use a \.zip, \.tar"):
        unpack(str(folder / "b.zip"), folder / "unpacked")
