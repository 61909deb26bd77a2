"""The served OpenAPI document says what the API really answers."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.cluster.submission_routes import submission_routes
from penstock.rest import driver_server
from penstock.rest.app import build_app
from penstock.rest.client import RestClientError
from penstock.rest.description.openapi import DESCRIBED, operations_of
from penstock.rest.routes.operations import Operations

jsonschema_rs = pytest.importorskip("jsonschema_rs")
schemathesis = pytest.importorskip("schemathesis")
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)


def failing(text):
    def check(word):
        if word == "bad":
            raise ValueError("a bad word")
        return word, 1

    return text.map(check).key_by(lambda pair: pair[0]).sum(1)


def app_of(job) -> Any:
    """The application that serves the job; it cannot end the process of the tests."""
    server = driver_server._server
    assert server is not None and server.dispatcher.find(job.id) is not None
    return build_app(server.dispatcher, Operations(60_000), lambda: None)


@pytest.fixture
def described_job(start_job, tmp_path, eventually):
    """A job with a checkpoint, a savepoint, a restart and metrics."""
    settings = {
        "execution.checkpointing.interval": "200 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "execution.checkpointing.savepoint-dir": str(tmp_path),
    }
    job = start_job(settings, failing)
    job.send("river\nrain\n")
    eventually(lambda: job.get("/checkpoints")["latest"]["completed"])
    job.client.trigger_savepoint().result()
    return job


def test_every_route_is_described_and_nothing_else(cluster, job):
    told = job.rest.get("/openapi.json")["paths"]
    served = {f"{method.upper()} {path}" for path, methods in told.items() for method in methods}
    of_job_managers = set(operations_of(submission_routes(cluster.session)))
    assert served.isdisjoint(of_job_managers) and served | of_job_managers == set(DESCRIBED)


def paths_of(job) -> dict[str, str]:
    """Every GET path, with what it is asked for."""
    names = {
        "job": job.id,
        "vertex": job.get()["vertices"][1]["id"],
        "checkpoint": job.get("/checkpoints")["latest"]["completed"]["id"],
        "subtask": "0",
        "attempt": "0",
        "taskmanager": job.rest.get("/taskmanagers")["taskmanagers"][0]["id"],
        "file": "penstock.log",
    }
    begun = {
        f"/jobs/{{job}}/{kind}/{{trigger}}": job.rest.post(f"{job.path}/{kind}", {})["request-id"]
        for kind in ("checkpoints", "savepoints")
    }
    begun["/savepoint-disposal/{trigger}"] = job.rest.post("/savepoint-disposal", {"savepoint-path": "/none"})[
        "request-id"
    ]
    paths = [path for path, methods in job.rest.get("/openapi.json")["paths"].items() if "get" in methods]
    return {path: path.format(**names, trigger=begun.get(path)) for path in paths}


def content_of(document: dict[str, Any], path: str) -> dict[str, Any]:
    content: dict[str, Any] = document["paths"][path]["get"]["responses"]["200"]["content"]
    return content


def check(document: dict[str, Any], path: str, answer: Any) -> None:
    schema = {**content_of(document, path)["application/json"]["schema"], "components": document["components"]}
    errors = [f"{error.instance_path}: {error.message}" for error in jsonschema_rs.iter_errors(schema, answer)]
    assert errors == [], f"GET {path} answers what it does not promise"


def test_answers_about_a_running_and_an_ended_job_are_as_promised(described_job, eventually):
    job = described_job
    document = job.rest.get("/openapi.json")
    paths = {path: url for path, url in paths_of(job).items() if "application/json" in content_of(document, path)}
    for path, url in paths.items():
        check(document, path, job.rest.get(url))
    for path in ("/jobs/{job}/metrics", "/jobs/{job}/vertices/{vertex}/metrics"):
        ids = ",".join(each["id"] for each in job.rest.get(paths[path]))
        check(document, path, job.rest.get(paths[path], get=ids))
    over_all = "/jobs/{job}/vertices/{vertex}/subtasks/metrics"
    check(document, over_all, job.rest.get(paths[over_all], get="numRecordsIn", agg="min,max,avg,sum,skew"))
    job.send("bad\nbad\n")
    eventually(lambda: job.get("/status")["status"] == "FAILED")
    for path, url in paths.items():
        if path.startswith("/jobs/") and "{trigger}" not in path:
            check(document, path, job.rest.get(url))
    assert job.get("/exceptions")["exceptionHistory"]["entries"]


SECRET = "hunter2and3"


def leaking(text):
    """A job that tells secrets wherever it can: in names, parameters, messages, logs and what it prints."""

    def check(word):
        logging.getLogger("of.the.job").warning("connecting with password=%s", SECRET)
        print(f"postgresql://ada:{SECRET}@db/x")
        if word == "bad":
            raise ValueError(f"no connection: password='{SECRET}', https://{SECRET}@site/")
        return word, 1

    text._environment.get_config().set_global_job_parameters({"db.password": SECRET, "url": f"http://u:{SECRET}@h/"})
    return text.map(check).name(f"to postgresql://ada:{SECRET}@db/x").key_by(lambda pair: pair[0]).sum(1)


def telling(job, paths):
    """The paths whose answers have the secret in them."""
    found = []
    for path, url in paths.items():
        if path.startswith("/taskmanagers/"):
            url = url.replace("penstock.log", "taskmanager.log")
        with job.rest.open("GET", url) as answer:
            text = answer.read().decode()
        if SECRET in text:
            found.append((path, text[max(text.index(SECRET) - 100, 0) :][:150]))
    return found


@pytest.mark.filterwarnings("ignore:unknown configuration key")
def test_no_route_tells_a_secret(start_job, tmp_path, eventually):
    settings = {
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.savepoint-dir": str(tmp_path),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "s3.secret-key": SECRET,
        "my.api-key": SECRET,
        "my.url-of-orders": f"jdbc:postgresql://db/x?user=ada&password={SECRET}",
        "rest.auth.token": SECRET * 4,
    }
    job = start_job(settings, leaking)
    job.send("river\n")
    eventually(lambda: job.get("/checkpoints")["latest"]["completed"])
    paths = paths_of(job)
    assert telling(job, paths) == []
    job.send("bad\n")
    eventually(lambda: job.get("/status")["status"] == "FAILED")
    assert job.get("/exceptions")["exceptionHistory"]["entries"]
    assert (
        telling(
            job,
            {
                path: url
                for path, url in paths.items()
                if path.startswith(("/jobs/{job}", "/jobm")) and "{trigger}" not in path
            },
        )
        == []
    )
    assert {"key": "s3.secret-key", "value": "******"} in job.rest.get("/jobmanager/config")


def test_refusals_are_flinks_errors(job):
    schema = job.rest.get("/openapi.json")["components"]["schemas"]["Errors"]
    assert schema["required"] == ["errors"]
    with pytest.raises(RestClientError) as refused:
        job.rest.get("/jobs/none")
    assert refused.value.status == 404


CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_no_request_that_fits_the_description_breaks_the_server(described_job, tmp_path, monkeypatch):
    """Schemathesis makes requests up; whatever they are, the answer is one that is described, and never a 500."""
    monkeypatch.chdir(tmp_path)  # Some ask for savepoints in folders with names made up.
    schema = schemathesis.openapi.from_asgi("/openapi.json", app_of(described_job))
    for found in schema.exclude(path="/cluster").get_all_operations():
        operation = found.ok()

        @settings(max_examples=4, database=None, phases=[Phase.explicit, Phase.generate])
        @given(case=operation.as_strategy(), is_of_job=st.booleans())
        def ask(case, is_of_job):
            if is_of_job and "job" in case.path_parameters and case.method != "PATCH":
                case.path_parameters["job"] = described_job.id
            case.call_and_validate(checks=CHECKS)

        ask()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_request_about_programs_breaks_the_job_manager(start_cluster, is_enabled):
    session = start_cluster({"web.submit.enable": str(is_enabled).lower()}).session
    app = build_app(session.dispatcher, Operations(60_000), lambda: None, submission_routes(session))
    operations = list(
        schemathesis.openapi.from_asgi("/openapi.json", app).include(path_regex="/jars").get_all_operations()
    )
    assert len(operations) == 6
    for found in operations:

        @settings(max_examples=10, database=None, phases=[Phase.explicit, Phase.generate])
        @given(case=found.ok().as_strategy())
        def ask(case):
            case.call_and_validate(checks=CHECKS)

        ask()
