"""Programs are uploaded and run at a job manager in the shapes of Flink's /jars, if that is allowed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cluster.uploaded_programs import ProgramError, UploadedPrograms
from penstock.rest.client import RestClientError

ENABLED = {"web.submit.enable": "true"}
PROGRAM = b"""
import sys
from pyflink.datastream import StreamExecutionEnvironment

print("defining")
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(sys.argv[1:]).map(lambda word: word.upper()).print()
env.execute("uploaded")
print("never reached")
"""
BOUNDARY = "----form"


def form(name: str, content: bytes, field: str = "jarfile") -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
    return (
        f"{head}Content-Type: application/x-java-archive\r\n\r\n".encode()
        + content
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )


def upload(cluster: Any, name: str, content: bytes, **more: Any) -> str:
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    with cluster.rest.open("POST", "/jars/upload", form(name, content, **more), headers) as answer:
        told = json.loads(answer.read())
    assert told["status"] == "success"
    return str(told["filename"].rpartition("/")[2])


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def refused(action: Any, *arguments: Any, **more: Any) -> RestClientError:
    with pytest.raises(RestClientError) as caught:
        action(*arguments, **more)
    return caught.value


def printed(cluster: Any, job_id: str, eventually: Any) -> list[str]:
    eventually(lambda: cluster.rest.get(f"/jobs/{job_id}/status")["status"] in ("FINISHED", "FAILED"))
    assert cluster.rest.get(f"/jobs/{job_id}/status") == {"status": "FINISHED"}
    return [line["text"] for line in cluster.rest.get(f"/jobs/{job_id}/stdout")["lines"]]


def test_nothing_is_taken_or_run_unless_enabled(cluster):
    assert cluster.rest.get("/config")["features"]["web-submit"] is False
    calls = [
        lambda: cluster.rest.get("/jars"),
        lambda: upload(cluster, "job.py", PROGRAM),
        lambda: cluster.rest.post("/jars/x_job.py/run", {}),
        lambda: cluster.rest.get("/jars/x_job.py/plan"),
        lambda: cluster.rest.delete("/jars/x_job.py"),
    ]
    for call in calls:
        error = refused(call)
        assert error.status == 403 and "web.submit.enable: true" in str(error)


def test_program_is_uploaded_listed_run_and_deleted(start_cluster, eventually):
    cluster = start_cluster(ENABLED)
    assert cluster.rest.get("/config")["features"]["web-submit"] is True
    program = upload(cluster, "words.py", PROGRAM)
    told = cluster.rest.get("/jars")
    (entry,) = told["files"]
    assert told["address"] == f"http://127.0.0.1:{cluster.port}"
    assert (entry["id"], entry["name"], entry["entry"][0]["name"]) == (program, "words.py", "words")
    body = {"programArgsList": ["river", "rain"], "parallelism": 1, "flinkConfiguration": {"pipeline.name": "wet"}}
    job_id = cluster.rest.post(f"/jars/{program}/run", body)["jobid"]
    assert printed(cluster, job_id, eventually) == ["RIVER", "RAIN"]
    assert cluster.rest.get(f"/jobs/{job_id}")["name"] == "uploaded"
    cluster.rest.delete(f"/jars/{program}")
    assert cluster.rest.get("/jars")["files"] == []
    assert refused(cluster.rest.post, f"/jars/{program}/run", {}).status == 404
    assert list(cluster.session.programs._folder.iterdir()) == [], "nothing stays of it"


def test_plan_of_a_program_is_that_of_its_job_which_does_not_run(start_cluster):
    cluster = start_cluster(ENABLED)
    program = upload(cluster, "words.py", PROGRAM)
    plan = cluster.rest.get(f"/jars/{program}/plan")["plan"]
    assert (plan["name"], plan["type"]) == ("uploaded", "STREAMING")
    assert any("Map" in node["description"] for node in plan["nodes"])
    wide = cluster.rest.post(f"/jars/{program}/plan", {"parallelism": 3, "programArgsList": ["river"]})["plan"]
    assert 3 in [node["parallelism"] for node in wide["nodes"]]
    assert cluster.rest.get("/jobs")["jobs"] == []
    assert refused(cluster.rest.get, "/jars/nowhere.py/plan").status == 404
    broken = upload(cluster, "broken.py", b"raise ValueError('broken')")
    error = refused(cluster.rest.get, f"/jars/{broken}/plan")
    assert error.status == 400 and "ValueError: broken" in str(error)


def test_archive_brings_its_modules_along(start_cluster, eventually):
    cluster = start_cluster(ENABLED)
    main = PROGRAM.replace(b"import sys", b"import sys\nfrom shouting.loud import shout").replace(
        b"lambda word: word.upper()", b"shout"
    )
    loud = b"def shout(word):\n    return word.upper() + '!'\n"
    files = {"__main__.py": main, "jobs/second.py": main, "jobs/__init__.py": b"", "shouting/__init__.py": b""}
    program = upload(cluster, "shop.zip", zipped({**files, "shouting/loud.py": loud}))
    job_id = cluster.rest.post(f"/jars/{program}/run", {"programArgsList": ["hail"], "parallelism": 1})["jobid"]
    assert printed(cluster, job_id, eventually) == ["HAIL!"]
    chosen = {"programArgsList": ["snow"], "entryClass": "jobs.second", "parallelism": 1}
    assert printed(cluster, cluster.rest.post(f"/jars/{program}/run", chosen)["jobid"], eventually) == ["SNOW!"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"print('no job here')", "ended without running a job"),
        (b"raise ValueError('broken')", "ValueError: broken"),
        (b"this is no Python", "SyntaxError"),
        (b"import os; os._exit(3)", "failed before it ran a job"),
    ],
)
def test_program_that_defines_no_job_is_refused_with_what_it_said(start_cluster, content, said):
    cluster = start_cluster(ENABLED)
    program = upload(cluster, "job.py", content)
    error = refused(cluster.rest.post, f"/jars/{program}/run", {})
    assert error.status == 400 and said in str(error)
    assert cluster.rest.get("/jobs")["jobs"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"parallelism": 0},
        {"parallelism": "many"},
        {"programArgsList": "a b"},
        {"flinkConfiguration": {"a": 1}},
        {"entryClass": "os; import sys"},
    ],
)
def test_wrong_orders_are_refused(start_cluster, body):
    cluster = start_cluster(ENABLED)
    program = upload(cluster, "job.zip", zipped({"a.py": b""}))
    assert refused(cluster.rest.post, f"/jars/{program}/run", body).status == 400


def test_archive_without_a_main_program_needs_a_module(start_cluster):
    cluster = start_cluster(ENABLED)
    program = upload(cluster, "job.zip", zipped({"a.py": b""}))
    assert "name the module to run as entryClass" in str(refused(cluster.rest.post, f"/jars/{program}/run", {}))


def test_what_is_no_program_or_has_no_room_is_refused(start_cluster):
    cluster = start_cluster({**ENABLED, "penstock.blob.max-total-size": "150000"})
    assert refused(upload, cluster, "virus.exe", b"MZ").status == 400
    assert "not a zip file" in str(refused(upload, cluster, "job.zip", b"no archive"))
    assert refused(upload, cluster, "job.py", PROGRAM, field="other").status == 400
    upload(cluster, "one.py", b"#" * 90_000)
    assert refused(upload, cluster, "two.py", b"#" * 90_000).status == 413, "there is no room for both"
    assert [each["name"] for each in cluster.rest.get("/jars")["files"]] == ["one.py"]
    bodies = [
        (b"", "multipart/form-data"),
        (b"x", f"multipart/form-data; boundary={BOUNDARY}"),
        (b"{}", "application/json"),
    ]
    for body, kind in bodies:
        assert refused(cluster.rest.open, "POST", "/jars/upload", body, {"Content-Type": kind}).status == 400


def test_damaged_archive_is_refused_and_others_are_still_listed(start_cluster):
    cluster = start_cluster(ENABLED)
    upload(cluster, "good.py", PROGRAM)
    damaged = zipped({"__main__.py": PROGRAM}).replace(b"PK\x01\x02", b"PK\x01\x00")
    error = refused(upload, cluster, "job.zip", damaged)
    assert error.status == 400 and "job.zip is not a zip file, or a damaged one" in str(error)
    assert [each["name"] for each in cluster.rest.get("/jars")["files"]] == ["good.py"]


NAMES = st.lists(st.sampled_from(["..", "/", "\\", "a", ".py", ".zip", "\0", "%2f", "~", " ", "\n"]), max_size=6)


@settings(max_examples=200)
@given(name=NAMES.map("".join))
def test_no_name_of_a_file_leads_out_of_the_folder(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("names")
    programs = UploadedPrograms(folder / "programs", 1000)
    try:
        program = programs.add(name, io.BytesIO(b""))
    except ProgramError:
        assert list((folder / "programs").iterdir()) == []
        return
    assert program.path.resolve().parent.parent == (folder / "programs").resolve()
    assert [each for each in folder.rglob("*") if each.is_file()] == [program.path]
    for other in (name, f"../{program.id}", f"{program.id}/../x", str(program.path), ""):
        with pytest.raises(ProgramError, match="no such program"):
            programs.delete(other)
    programs.delete(program.id)
    assert list(Path(folder / "programs").iterdir()) == []
