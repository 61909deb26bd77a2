"""What is listed is what a job reports, in both directions; what is made from the list agrees with it; reporters."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import socket
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Duration, Encoder, Time, Types, WatermarkStrategy
from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.connectors.bad_records import BadRecords
from penstock.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.functions import CoMapFunction, MapFunction
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.jobmaster.metrics.catalogue import CATALOGUE, DEFINED, Kind, Scope, as_markdown
from penstock.jobmaster.metrics.job_metrics import MOST_METRICS, JobMetrics
from penstock.jobmaster.metrics.prometheus import as_text
from penstock.jobmaster.metrics.reporters import Reporters, SampleFilter, settings_of
from penstock.jobmaster.metrics.samples import Sample, of_process
from penstock.rest import driver_server
from penstock.runtime.metric_reports import CounterReport, GaugeReport

prometheus_parser = pytest.importorskip("prometheus_client.parser")

DOCS = Path(__file__).parents[3] / "docs"
NEEDS_A_SERVER = {"sinks that have OnRefused", "Kafka source", "where Spark's executors are known"}
"""Conditions that no job in this process meets: tests/connectors has those of connectors."""
USERS = {"fish.seen", "sizes_sum", "sizes_count", "sizes_min", "sizes_max", "sizes_mean", "depth"}


EVENTS = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["at"], [Types.LONG()])).build()


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["at"])


class Either(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class Measuring(MapFunction):
    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.add_group("fish", "carp").counter("seen")
        self.sizes = group.distribution("sizes")
        group.gauge("depth", lambda: "deep")

    def map(self, value: Any) -> Any:
        self.seen.inc()
        self.sizes.update(value["at"])
        return value


@pytest.fixture
def measured_job(start_job, tmp_path, eventually):
    """A job that has every kind of metric: files with bad lines, windows with late records, commits, latency markers.

    It goes on from a savepoint of itself.
    """
    lines = [json.dumps({"at": at}) for at in (1_000, 2_000, 9_000, 500, 12_000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "events.json").write_text("\n".join([*lines[:2], "this is no JSON", *lines[2:]]) + "\n")
    settings = {
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "metrics.latency.interval": "1 ms",
        "penstock.epoch.max-records": "1",
        "parallelism.default": "2",
    }

    def define(text: Any) -> Any:
        env = text.get_execution_environment()
        source = (
            FileSource.for_record_stream_format(StreamFormat.line_format(EVENTS), str(tmp_path / "in"))
            .set_bad_records(BadRecords.skip())
            .monitor_continuously(Duration.of_millis(20))
            .build()
        )
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
        events = env.from_source(source, strategy, "events").set_parallelism(1).map(Measuring())
        ends = events.map(lambda event: (0, event["at"])).key_by(lambda pair: pair[0])
        windows = ends.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda one, other: other)
        rows = windows.map(str, Types.STRING())
        rows.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
        return text.connect(rows).map(Either())

    first = start_job(settings, define)
    eventually(lambda: "numFiredTimers" in {each.name for each in samples_of(first)})
    path = first.client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    (tmp_path / "in" / "more.json").write_text("".join(f'{{"at": {at}}}\nno\n' for at in (15_000, 100, 20_000, 90_000)))
    job = start_job({**settings, "execution.state-recovery.path": path}, define)
    job.send("rain\n")
    wanted = {each.name for each in CATALOGUE if each.condition not in NEEDS_A_SERVER}
    with contextlib.suppress(AssertionError):  # The comparison reports what is missing.
        eventually(lambda: wanted <= {sample.logical for sample in samples_of(job)} | {"latency"})
    return job


def samples_of(job: Any) -> list[Sample]:
    server = driver_server._server
    assert server is not None
    of_others = {each.job_id for each in server.dispatcher.running()} - {job.id}
    return [each for each in of_process(server.dispatcher) if each.variables.get("job_id") not in of_others]


def name_in_list(sample: Sample) -> tuple[Scope, str]:
    return sample.scope, "latency" if sample.scope is Scope.LATENCY else sample.logical


def test_list_and_job_agree_in_both_directions(measured_job):
    reported = {name_in_list(each): each for each in samples_of(measured_job)}
    listed = {(each.scope, each.name) for each in CATALOGUE if each.condition not in NEEDS_A_SERVER}
    of_users = {(Scope.OPERATOR, name) for name in USERS}
    assert set(reported) - of_users - set(DEFINED) == set(), "reported, but not listed"
    assert listed - set(reported) == set(), "listed, but not reported"
    for key, sample in reported.items():
        if key in DEFINED:
            assert sample.kind is DEFINED[key].kind, key
            assert set(sample.variables) <= set(key[0].variables), key
    assert reported[Scope.OPERATOR, "fish.seen"].variables["fish"] == "carp"
    assert reported[Scope.OPERATOR, "numRecordsInErrors"].value > 0


def test_inputs_of_an_operator_report_how_far_each_is(measured_job):
    reported = {
        each.name: each
        for each in samples_of(measured_job)
        if each.variables.get("operator_name", "").startswith("Co-")
    }
    first, second = (reported[f"currentInput{number}Watermark"].value for number in (1, 2))
    assert first == MIN_LONG_VALUE and second > 0, "text from a socket has no time, and windows do"
    assert reported["currentInputWatermark"].value == first, "the slower one decides"


def test_rest_reports_the_same_names_as_flink(measured_job):
    of_job = {each["id"] for each in measured_job.get("/metrics")}
    assert {"uptime", "numRestarts", "lastCheckpointRestoreTimestamp", "numEpochs"} <= of_job
    latency = r"latency\.source_id\.[0-9a-f]{32}\.operator_id\.[0-9a-f]{32}\.operator_subtask_index\.\d\.latency_p99"
    assert any(re.fullmatch(latency, name) for name in of_job)


def test_prometheus_reads_what_is_reported(measured_job):
    with measured_job.rest.open("GET", "/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    families = {each.name: each for each in prometheus_parser.text_string_to_metric_families(text)}
    uptime = families["flink_jobmanager_job_uptime"].samples
    assert measured_job.id in [each.labels["job_id"] for each in uptime]
    latency = families["flink_taskmanager_job_latency_source_id_operator_id_operator_subtask_index_latency"]
    assert latency.type == "summary" and {each.labels.get("quantile") for each in latency.samples} >= {"0.5", "0.99"}
    sent = families["flink_taskmanager_job_task_operator_numRecordsSend"].samples
    assert {each.labels["subtask_index"] for each in sent} <= {"0", "1"} and sum(each.value for each in sent) > 0


def test_page_is_what_the_list_makes():
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert as_markdown() in page, "put what penstock.jobmaster.metrics.catalogue.as_markdown() gives into the page"


def test_grafana_dashboard_names_only_metrics_that_exist():
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [each["query"]["query"] for each in dashboard["templating"]["list"] if isinstance(each["query"], dict)]
    named = {name for query in queries for name in re.findall(r"flink_\w+", query)}
    exist = {f"flink_{each.scope.value}_{each.name}".replace(".", "_") for each in CATALOGUE}
    exist.add("flink_taskmanager_job_latency_source_id_operator_id_operator_subtask_index_latency")
    assert len(named) > 15 and named - exist == set()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


# --- Prometheus' format -----------------------------------------------------------------------------------------------

texts = st.text(max_size=20)
label_names = st.from_regex(r"[a-z_]?[a-z][a-z0-9_]{0,4}", fullmatch=True)


def read_back(sample: Sample) -> Any:
    [family] = prometheus_parser.text_string_to_metric_families(as_text([sample]))
    [read] = family.samples
    return read


@given(texts, st.dictionaries(label_names, texts, max_size=3), st.floats() | st.integers(-(2**53), 2**53))
def test_names_labels_and_values_can_be_read_back(name, variables, value):
    read = read_back(Sample(Scope.OPERATOR, name, name, Kind.GAUGE, value, variables))
    assert read.labels == variables
    assert read.value == value or (math.isnan(read.value) and math.isnan(value))


@given(st.dictionaries(texts, texts, max_size=3))
def test_any_name_of_a_variable_makes_a_label_that_prometheus_takes(variables):
    read = read_back(Sample(Scope.OPERATOR, "n", "n", Kind.GAUGE, 1, variables))
    assert set(read.labels.values()) <= set(variables.values())


def test_texts_are_left_out():
    assert as_text([Sample(Scope.JOB, "lastCheckpointExternalPath", "path", Kind.TEXT, "/tmp", {})]) == ""


# --- reporters --------------------------------------------------------------------------------------------------------

SAMPLES = [
    Sample(Scope.JOB, "uptime", "uptime", Kind.GAUGE, 7, {"job_name": "fish", "host": "pond"}),
    Sample(Scope.TASK, "numRecordsIn", "numRecordsIn", Kind.COUNTER, 3, {"job_name": "fish"}),
]


@pytest.fixture
def reporters():
    started = Reporters(lambda: SAMPLES)
    yield started
    started.close()


def test_flinks_keys_open_a_port_for_prometheus(reporters):
    factory = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    config = {"metrics.reporter.prom.factory.class": factory, "metrics.reporter.prom.port": "0"}
    reporters.start(Configuration.from_dict(config))
    port = reporters.started["prom"].port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert 'flink_jobmanager_job_uptime{job_name="fish",host="pond"} 7' in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd")


def test_reporter_that_cannot_be_started_is_reported_and_does_no_harm(reporters, caplog):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        config = {"metrics.reporter.prom.factory.class": "prometheus", "metrics.reporter.prom.port": port}
        reporters.start(Configuration.from_dict(config))
    reporters.start(Configuration.from_dict({"metrics.reporter.x.factory.class": "org.acme.Factory"}))
    reporters.start(Configuration.from_dict({"metrics.reporters": "nobody"}))
    assert "give it a range of ports" in caplog.text
    assert "metrics.reporter.x.factory.class is 'org.acme.Factory'; use prometheus" in caplog.text
    assert "metrics.reporters names 'nobody'" in caplog.text


def test_only_chosen_reporters_count():
    config = {"metrics.reporter.a.port": "1", "metrics.reporter.b.port": "2", "metrics.reporters": "b"}
    assert settings_of(Configuration.from_dict(config)) == {"b": {"port": "2"}}


def test_filters_choose_metrics_and_variables():
    chosen = SampleFilter.of(
        {
            "filter.includes": "jobmanager.job:up*;*:*:counter",
            "filter.excludes": "*:numRecordsIn",
            "scope.variables.excludes": "host",
            "scope.variables.additional": "zone:north",
        }
    )
    [kept] = chosen.of_all(SAMPLES)
    assert (kept.name, kept.variables) == ("uptime", {"job_name": "fish", "zone": "north"})


def test_opentelemetry_exports_to_a_collector(reporters):
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    received: list[Any] = []
    has_come = threading.Event()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            received.append(service.ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()
            has_come.set()

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        config = {
            "metrics.reporter.otel.factory.class": "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory",
            "metrics.reporter.otel.exporter.endpoint": f"http://127.0.0.1:{collector.server_port}/v1/metrics",
            "metrics.reporter.otel.exporter.protocol": "http",
            "metrics.reporter.otel.interval": "50 ms",
            "metrics.reporter.otel.service.name": "pond",
        }
        reporters.start(Configuration.from_dict(config))
        assert has_come.wait(30)
        reporters.close()
        collector.shutdown()
    [of_resource] = received[0].resource_metrics
    assert ("service.name", "pond") in [(each.key, each.value.string_value) for each in of_resource.resource.attributes]
    metrics = {each.name: each for each in of_resource.scope_metrics[0].metrics}
    assert metrics["flink.jobmanager.job.uptime"].gauge.data_points[0].as_int == 7
    assert metrics["flink.taskmanager.job.task.numRecordsIn"].sum.data_points[0].as_int == 3


def test_log_reporter_writes_lines(reporters, caplog):
    caplog.set_level(logging.INFO)
    reporters.start(Configuration.from_dict({"metrics.reporter.log.factory.class": "slf4j"}))
    reporters.close()  # Which reports once more.
    assert "fish.uptime: 7" in caplog.text


# --- memory -----------------------------------------------------------------------------------------------------------


def test_number_of_metrics_is_bounded(caplog):
    metrics = JobMetrics()
    for at in range(MOST_METRICS + 5):
        metrics.add("op", 0, {f"key-{at}": CounterReport(1)})
    metrics.add("op", 0, {"key-0": CounterReport(1)})
    known = metrics.by_operator()["op"]
    assert len(known) == MOST_METRICS and known["key-0"] == 2
    assert caplog.text.count("has more than") == 1


def test_subtasks_are_kept_apart_and_summed():
    metrics = JobMetrics(clock=lambda: 100.0)
    for subtask in (0, 1):
        metrics.add("op", subtask, {"numRecordsIn": CounterReport(10), "depth": GaugeReport(subtask)})
    assert metrics.by_operator() == {"op": {"numRecordsIn": 20, "depth": {0: 0, 1: 1}}}
    assert sorted(metrics.rates("op")) == [("numRecordsInPerSecond", 0, 10.0), ("numRecordsInPerSecond", 1, 10.0)]
