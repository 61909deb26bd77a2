"""Epochs, backpressure, flame graphs and printed lines of jobs that really run (without Spark)."""

from __future__ import annotations

import pytest

from penstock.rest.client import RestClientError


def busy(text):
    def work(word):  # With a loop: it is called, and not written into the loop of its chain.
        total = 0
        for number in range(20_000):
            total += number
        return word, total

    return text.map(work).filter(lambda pair: pair[1] < 0)


def test_series_report_what_went_through_each_vertex(job, eventually):
    job.send("river\nrain\n" * 10)
    source, counts = (vertex["id"] for vertex in job.get()["vertices"])

    def all_read():
        told = job.get("/epochs")
        return told if sum(told["vertices"][source]["records-in"]) == 20 else None

    told = eventually(all_read)
    assert sum(told["vertices"][counts]["records-in"]) == 20
    assert told["resolution"] == 1000 and len(told["timestamps"]) == len(told["epochs"]) == len(told["running"])
    later = job.get("/epochs", since=str(told["timestamps"][-1]))
    assert all(at > told["timestamps"][-1] for at in later["timestamps"])


def test_wrong_questions_about_epochs_are_refused(job):
    for query in ({"resolution": "7"}, {"since": "yesterday"}):
        with pytest.raises(RestClientError) as refused:
            job.get("/epochs", **query)
        assert refused.value.status == 400


def test_series_and_printed_lines_stay_after_the_end(job):
    job.send("river\nrain\n")
    job.end()
    series = job.get("/epochs")["vertices"]
    assert [sum(series[vertex["id"]]["records-in"]) for vertex in job.get()["vertices"]] == [2, 2]
    lines = [{"stream": "stdout", "text": text} for text in ("(river,1)", "(rain,1)")]
    assert job.get("/stdout") == {"total": 2, "lines": lines}


def test_printed_lines_that_are_kept_are_bounded(start_job, eventually):
    job = start_job(define=lambda text: text.flat_map(lambda word: [word] * 1500))
    job.send("x\n")
    printed = eventually(lambda: (told := job.get("/stdout"))["total"] == 1500 and told)
    assert len(printed["lines"]) == 1000
    job.send("y" * 5000 + "\n")
    printed = eventually(lambda: (told := job.get("/stdout"))["total"] == 3000 and told)
    assert {line["text"] for line in printed["lines"]} == {"y" * 2000} and len(printed["lines"]) == 100


def test_backpressure_has_flinks_shape(job):
    vertex = job.get()["vertices"][0]["id"]
    told = job.get(f"/vertices/{vertex}/backpressure")
    assert (told["status"], told["backpressureLevel"]) == ("ok", "ok")
    (subtask,) = told["subtasks"]
    assert subtask["ratio"] + subtask["busyRatio"] + subtask["idleRatio"] == pytest.approx(1)


def test_rates_are_metrics_of_the_task(job, eventually):
    job.send("river\nrain\n")
    vertex = job.get()["vertices"][0]["id"]
    names = {"numRecordsInPerSecond", "busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"}
    eventually(lambda: names <= {each["id"] for each in job.get(f"/vertices/{vertex}/subtasks/metrics")})


def test_flame_graph_shows_the_users_function(start_job, eventually):
    job = start_job(define=busy)
    vertex = job.get()["vertices"][0]["id"]

    def names(frame):
        return {frame["name"].split(" ")[0], *(name for child in frame["children"] for name in names(child))}

    def seen():
        job.send("river\n" * 200)
        told = job.get(f"/vertices/{vertex}/flamegraph")
        return "work" in names(told["data"]) and told

    told = eventually(seen)
    assert told["data"]["value"] == sum(child["value"] for child in told["data"]["children"])
