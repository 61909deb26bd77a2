from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from penstock.cluster.job_bundle import bundled
from penstock.common import Configuration
from penstock.common.exceptions import (
    ConfigurationError,
    EnvironmentSetupError,
    InvalidProgramError,
    UnsupportedFeatureError,
)
from penstock.common.notices import PenstockWarning
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.dependencies import CachedFile, JobDependencies
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.dependencies.archives import copy, files_below, pack, unpack
from penstock.jobmaster.dependencies.blob_store import BlobError, BlobStore, ShippedFile
from penstock.jobmaster.dependencies.local_dependencies import LocalDependencies, put_on_path
from penstock.jobmaster.dependencies.requirements import install_requirements
from penstock.jobmaster.job_submission import JobSubmission
from penstock.runtime.failure import describe_failure


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


def test_archive_has_its_name_only_when_it_is_complete(folder, tmp_path, monkeypatch):
    target = tmp_path / "packed"
    target.mkdir()
    seen = []
    write = zipfile.ZipFile.write

    def watched(packed, file, name):
        write(packed, file, name)
        seen.extend(target.glob("[!.]*"))
        if file.name == "d.txt":
            raise OSError("no space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "write", watched)
    with pytest.raises(OSError, match="no space"):
        pack(files_below(folder), target)
    assert seen == [] and list(target.iterdir()) == [], "another job would take what is there for the whole"


def test_copy_that_another_job_may_be_reading_is_left_alone(folder, tmp_path):
    copy(folder / "a.py", tmp_path / "0123-a.py")
    first = (tmp_path / "0123-a.py").stat()
    copy(folder / "a.py", tmp_path / "0123-a.py")
    second = (tmp_path / "0123-a.py").stat()
    assert (first.st_ino, first.st_mtime_ns) == (second.st_ino, second.st_mtime_ns)


def test_files_older_than_zip_files_are_packed(folder, tmp_path):
    os.utime(folder / "a.py", (0, 0))  # As reproducible builds leave them
    unpacked = unpack(str(pack([(folder / "a.py", "a.py")], tmp_path)), tmp_path / "unpacked")
    assert (unpacked / "a.py").read_text() == "a.py"


def test_programs_in_a_zip_file_can_still_be_run(folder, tmp_path):
    (folder / "a.py").chmod(0o755)
    (folder / "d.txt").chmod(0o644)
    unpacked = unpack(str(pack(files_below(folder), tmp_path)), tmp_path / "unpacked")
    assert os.access(unpacked / "a.py", os.X_OK)
    assert (unpacked / "d.txt").stat().st_mode & 0o111 == 0


def test_what_is_no_archive_is_refused(folder):
    with pytest.raises(InvalidProgramError, match=r"b\.zip cannot be unpacked .*use a \.zip, \.tar"):
        unpack(str(folder / "b.zip"), folder / "unpacked")


# --- what comes from others ----------------------------------------------------------------------------------------

OUTSIDE = ["../outside", "a/../../outside", "/tmp/outside-of-penstock"]


def tar_with(path: Path, *members: tarfile.TarInfo) -> str:
    with tarfile.open(path, "w:gz") as packed:
        for member in members:
            packed.addfile(member, io.BytesIO(b"x" * member.size))
    return str(path)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, int(kind == tarfile.REGTYPE), 0o6777
    return info


@pytest.mark.parametrize("name", OUTSIDE)
def test_tar_cannot_write_outside_of_its_folder(tmp_path, name):
    archive = tar_with(tmp_path / "a.tgz", member(name))
    unpacked = tmp_path / "x" / "y"
    unpacked.mkdir(parents=True)
    with contextlib.suppress(InvalidProgramError):  # An absolute name may also become one within the folder.
        unpack(archive, unpacked)
    found = [path for path in tmp_path.rglob("outside*") if unpacked not in path.parents]
    assert found == [] and not Path("/tmp/outside-of-penstock").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_tar_cannot_write_through_a_link(tmp_path, kind):
    (tmp_path / "precious").mkdir()
    link = member("link", kind, "../precious")
    with pytest.raises(InvalidProgramError, match="cannot be unpacked"):
        unpack(tar_with(tmp_path / "a.tgz", link, member("link/planted")), tmp_path / "unpacked")
    assert list((tmp_path / "precious").iterdir()) == []


def test_tar_cannot_make_devices_or_programs_with_other_rights(tmp_path):
    unpacked = unpack(tar_with(tmp_path / "a.tgz", member("program")), tmp_path / "unpacked")
    assert (unpacked / "program").stat().st_mode & 0o7022 == 0
    with pytest.raises(InvalidProgramError):
        unpack(tar_with(tmp_path / "b.tgz", member("pipe", tarfile.FIFOTYPE)), tmp_path / "other")


@pytest.mark.parametrize("name", OUTSIDE)
def test_zip_with_names_outside_of_its_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(name, "x")
    with pytest.raises(InvalidProgramError, match="outside of its folder"):
        unpack(str(tmp_path / "a.zip"), tmp_path / "x" / "y")
    assert not (tmp_path / "x").exists() and not (tmp_path / "outside").exists()


@pytest.mark.parametrize("target", ["..", "../x", "a/../../x", "/x", "a\0b"])
def test_target_of_an_archive_lies_within_the_job(folder, target):
    with pytest.raises(InvalidProgramError, match="relative path without"):
        JobDependencies().add_python_archive("b.zip", target)
    with pytest.raises(InvalidProgramError, match="relative path without"):  # As it comes from a client
        JobDependencies(archives=[("b.zip", target)])


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "a\0b", "a" * 256, "é" * 128, "\ud800", 7, None])
def test_shipped_file_has_the_name_of_a_file(name):
    with pytest.raises(BlobError, match="not the name of a file"):
        ShippedFile.of_json({"name": name, "blob": "0" * 64, "is-folder": False})


def test_failure_in_a_shipped_module_names_the_file_that_was_submitted(tmp_path, monkeypatch):
    submitted = tmp_path / "program"
    submitted.mkdir()
    (submitted / "prices_of_day.py").write_text("def price(x):\n    return 1 // x\n")
    dependencies = JobDependencies()
    dependencies.add_python_file(str(submitted / "prices_of_day.py"))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    store = BlobStore(tmp_path / "store", 10**6, 60, 10**6)
    with bundled(build_job_graph(env.get_stream_graph()), Configuration(), dependencies) as bundle:
        for blob, content in bundle.blobs.items():
            with store.upload(blob) as upload:
                upload.write(content if isinstance(content, bytes) else content.read_bytes())
                upload.finish()
        received = JobSubmission.of_json(json.loads(json.dumps(bundle.submission.to_json())))
    monkeypatch.setattr(sys, "path", list(sys.path))
    put_on_path(received.dependencies.at(store.materialize))
    module = importlib.import_module("prices_of_day")
    assert str(tmp_path / "store") in str(module.__file__)
    with pytest.raises(ZeroDivisionError) as caught:
        module.price(0)
    text = describe_failure(caught.value, 0, "Map", 0, 1).user_traceback
    assert f'File "{submitted}/prices_of_day.py", line 2, in price' in text
    assert "return 1 // x" in text and str(tmp_path / "store") not in text


@pytest.fixture(scope="module")
def requirements(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A requirement that is installed from a folder."""
    folder = tmp_path_factory.mktemp("requirements")
    packages = folder / "wheels"
    packages.mkdir()
    info = "rates_of_rain-1.0.dist-info"
    with zipfile.ZipFile(packages / "rates_of_rain-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("rates_of_rain.py", "RATE = 1")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: rates_of_rain\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (folder / "needed.txt").write_text("rates_of_rain==1.0\n")
    return str(folder / "needed.txt"), str(packages)


def working_in(folder: Path) -> Configuration:
    return Configuration.from_dict({"penstock.working-dir": str(folder)})


@pytest.fixture(scope="module")
def installed_once(requirements: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder in which pip has installed it."""
    folder = tmp_path_factory.mktemp("installed")
    install_requirements(requirements, working_in(folder))
    return folder


@pytest.fixture
def installed(requirements: tuple[str, str], installed_once: Path, tmp_path: Path) -> tuple[Path, Configuration]:
    """A copy of it: where the packages are, and the settings that lead there."""
    shutil.copytree(installed_once, tmp_path / "shared", symlinks=True)
    (packages,) = (tmp_path / "shared" / "cache").glob("requirements-*/*/packages")
    return packages, working_in(tmp_path / "shared")


def test_installed_requirements_are_the_users_alone_and_used_again(requirements, installed):
    packages, config = installed
    assert stat.S_IMODE(packages.parent.parent.stat().st_mode) == 0o700
    before = (packages / "rates_of_rain.py").stat().st_ino
    assert install_requirements(requirements, config) == packages
    assert (packages / "rates_of_rain.py").stat().st_ino == before


@pytest.mark.parametrize("spoil", ["change", "add", "remove"])
def test_installed_requirements_that_were_changed_are_installed_again(requirements, installed, spoil, caplog):
    packages, config = installed
    if spoil == "change":
        (packages / "rates_of_rain.py").write_text("RATE = 2")
    elif spoil == "add":
        (packages / "sitecustomize.py").write_text("planted = True")
    else:
        (packages / "rates_of_rain.py").unlink()
    assert install_requirements(requirements, config) == packages
    assert (packages / "rates_of_rain.py").read_text() == "RATE = 1"
    assert not (packages / "sitecustomize.py").exists() and "installed again" in caplog.text


def test_requirements_that_somebody_has_put_into_a_shared_folder_are_not_imported(requirements, installed):
    packages, config = installed
    digest, users = packages.parent.name, packages.parent.parent
    shutil.rmtree(users)
    planted = users.parent / f"requirements-{digest}"  # Where it was looked for once
    planted.mkdir()
    (planted / "rates_of_rain.py").write_text("planted = True")
    found = install_requirements(requirements, config)
    assert found == packages and (found / "rates_of_rain.py").read_text() == "RATE = 1"


@pytest.mark.parametrize("kind", ["link", "open to all"])
def test_folder_of_the_user_that_somebody_else_may_have_made_is_refused(requirements, tmp_path, kind):
    users = tmp_path / "cache" / f"requirements-{os.getuid()}"
    users.parent.mkdir()
    if kind == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        users.symlink_to(tmp_path / "theirs")
    else:
        users.mkdir()
        users.chmod(0o777)
    with pytest.raises(EnvironmentSetupError, match="must belong to user"):
        install_requirements(requirements, working_in(tmp_path))
