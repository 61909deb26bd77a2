"""ElasticsearchSink and its sister for OpenSearch, by the official clients, against a server of this process."""

from __future__ import annotations

import pickle

import pytest
from bulk_server import BulkServer
from hypothesis import given, settings
from hypothesis import strategies as st
from server_sink_job import ServerSinkJob

from penstock.common import Row
from penstock.common.exceptions import ConnectorError, UnsupportedFeatureError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import OnRefused
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from penstock.datastream.connectors.opensearch import OpensearchSinkBuilder
from penstock.datastream.connectors.support.refused_records import REFUSED_METRIC

BY_ID = ElasticsearchEmitter.static_index("users", "id")


@pytest.fixture(params=[Elasticsearch7SinkBuilder, OpensearchSinkBuilder])
def builder(request):
    pytest.importorskip(request.param._package)
    return request.param()


@pytest.fixture
def server(bulk_server):
    return bulk_server


def users(number):
    return {"id": f"u{number % 3}", "n": number}


def job(builder, server, tmp_path, emitter=BY_ID, element_of=users):
    return ServerSinkJob(builder.set_hosts(server.host).set_emitter(emitter).build(), tmp_path, element_of)


def retrying(builder, times=2):
    return builder.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, times, 100)


def pauses_of(running):
    pauses = []
    running.operators[0].writer._pause = pauses.append
    return pauses


def test_documents_with_ids_are_updated_or_inserted_once(builder, server, tmp_path):
    server.indices["users"] = {"u0": {"name": "ada", "n": -1}}
    running = job(builder, server, tmp_path)
    running.write(4).checkpoint("snapshot").crash().write(4).end()
    assert server.documents("users") == {
        "u0": {"name": "ada", "id": "u0", "n": 3},
        "u1": {"id": "u1", "n": 1},
        "u2": {"id": "u2", "n": 2},
    }
    assert {kind for actions in server.requests for kind, _, _ in actions} == {"update"}


def test_documents_without_ids_are_new_ones(builder, server, tmp_path):
    job(builder, server, tmp_path, ElasticsearchEmitter.static_index("log")).write(3).end()
    assert [document["n"] for document in server.documents("log").values()] == [0, 1, 2]
    assert [meta for _, meta, _ in server.requests[0]] == [{"_index": "log"}] * 3


def test_a_field_names_the_index(builder, server, tmp_path):
    emitter = ElasticsearchEmitter.dynamic_index("kind", "id")
    elements = [{"kind": "a", "id": 1, "n": 1}, Row(kind="b", id=1, n=2)]
    job(builder, server, tmp_path, emitter, elements.__getitem__).write(2).end()
    assert (server.documents("a"), server.documents("b")) == (
        {"1": {"kind": "a", "id": 1, "n": 1}},
        {"1": {"kind": "b", "id": 1, "n": 2}},
    )


def test_fields_may_have_the_names_of_what_actions_have(builder, server, tmp_path):
    document = {"id": "1", "version": 3, "routing": "x", "_source": {}, "pipeline": 1, "_index": "other"}
    job(builder, server, tmp_path, ElasticsearchEmitter.static_index("log"), lambda n: document).write().end()
    assert list(server.documents("log").values()) == [document]


class Mirror(ElasticsearchEmitter):
    """What is negative is deleted."""

    def emit(self, element):
        target = {"_index": "mirror", "_id": str(abs(element))}
        if element < 0:
            yield {**target, "_op_type": "delete"}
        else:
            yield {**target, "_op_type": "index", "_source": {"n": element}}


def test_an_emitter_of_ones_own_gives_any_actions(builder, server, tmp_path):
    elements = [1, 2, -1, -7]  # To delete what is not there is no failure.
    job(builder, server, tmp_path, Mirror(), elements.__getitem__).write(4).end()
    assert server.documents("mirror") == {"2": {"n": 2}}


def test_actions_are_sent_when_there_are_enough_after_some_time_and_with_a_checkpoint(builder, server, tmp_path):
    running = job(builder.set_bulk_flush_max_actions(2).set_bulk_flush_interval(100), server, tmp_path)
    running.write(3)
    assert [len(actions) for actions in server.requests] == [2]
    running.processing_time(100)
    assert [len(actions) for actions in server.requests] == [2, 1]
    running.write().checkpoint("snapshot")
    assert [len(actions) for actions in server.requests] == [2, 1, 1]
    running.close()


def test_without_a_guarantee_a_checkpoint_does_not_wait(builder, server, tmp_path):
    running = job(builder.set_delivery_guarantee(DeliveryGuarantee.NONE), server, tmp_path)
    running.write(2).checkpoint("snapshot")
    assert server.requests == []
    running.end()
    assert len(server.documents("users")) == 2


def test_large_requests_are_split(builder, server, tmp_path):
    large = {"id": "1", "text": "x" * 700_000}
    log = ElasticsearchEmitter.static_index("log")
    job(builder.set_bulk_flush_max_size_mb(1), server, tmp_path, log, lambda n: large).write(3).end()
    assert [len(actions) for actions in server.requests] == [1, 1, 1]


@pytest.mark.parametrize("trouble", [[503, 429, 200], [0, 0, 200], [-1, 502, 200]])
def test_a_node_that_is_busy_or_away_is_asked_again(builder, server, tmp_path, trouble):
    running = job(retrying(builder), server, tmp_path).write(2)
    pauses = pauses_of(running)
    server.statuses = list(trouble)
    running.checkpoint("snapshot").close()
    assert {key: each["n"] for key, each in server.documents("users").items()} == {"u0": 0, "u1": 1}
    assert pauses == [0.1, 0.2]


def test_pauses_may_stay_the_same(builder, server, tmp_path):
    builder.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 50)
    running = job(builder, server, tmp_path).write()
    pauses, server.statuses = pauses_of(running), [503, 503, 503, 200]
    running.checkpoint("snapshot").close()
    assert pauses == [0.05] * 3


def test_only_what_was_refused_is_sent_again_with_what_is_behind_it_for_the_same_document(builder, server, tmp_path):
    running = job(retrying(builder), server, tmp_path).write(5)
    pauses_of(running)
    server.busy = {"u1": 1}
    running.checkpoint("snapshot").close()
    sent = [[(meta["_id"], source["doc"]["n"]) for _, meta, source in actions] for actions in server.requests]
    assert sent == [[("u0", 0), ("u1", 1), ("u2", 2), ("u0", 3), ("u1", 4)], [("u1", 1), ("u1", 4)]]
    assert server.documents("users")["u1"]["n"] == 4


@settings(max_examples=12)
@given(
    elements=st.lists(st.integers(-3, 3).filter(bool), max_size=12),
    busy=st.dictionaries(st.sampled_from("123"), st.integers(0, 3)),
    statuses=st.lists(st.sampled_from([200, 429, 503, -1]), max_size=4),
    batch=st.integers(1, 5),
)
def test_whatever_is_refused_for_now_each_document_ends_as_its_last_action_says(
    tmp_path_factory, elements, busy, statuses, batch
):
    expected = {}
    for element in elements:
        if element < 0:
            expected.pop(str(-element), None)
        else:
            expected[str(element)] = {"n": element}
    server = BulkServer()
    server.busy, server.statuses = dict(busy), list(statuses)
    try:
        patient = retrying(Elasticsearch7SinkBuilder(), 20).set_bulk_flush_max_actions(batch)
        sink = patient.set_hosts(server.host).set_emitter(Mirror()).build()
        running = ServerSinkJob(sink, tmp_path_factory.mktemp("job"), elements.__getitem__)
        pauses_of(running)
        running.write(len(elements)).end()
    finally:
        server.close()
    assert server.documents("mirror") == expected


def test_a_node_that_stays_busy_fails_the_job(builder, server, tmp_path):
    running = job(retrying(builder), server, tmp_path).write(2)
    pauses_of(running)
    server.busy = {"u1": 9}
    with pytest.raises(ConnectorError, match=rf"{server.host} has not taken 1 actions in 3 attempts: .*es_rejected"):
        running.checkpoint()


def test_without_a_strategy_the_first_trouble_fails_the_job(builder, server, tmp_path):
    server.statuses = [503]
    with pytest.raises(ConnectorError, match=r"2 actions in 1 attempts: .*503.*set_bulk_flush_backoff_strategy"):
        job(builder, server, tmp_path).write(2).checkpoint()


def test_a_cluster_that_is_away_is_named(builder, tmp_path):
    sink = builder.set_hosts("127.0.0.1:1").set_emitter(BY_ID).build()
    with pytest.raises(ConnectorError, match=r"http://127.0.0.1:1 has not taken 1 actions in 1 attempts: Connection"):
        ServerSinkJob(sink, tmp_path, users).write().checkpoint()


def test_a_request_that_is_refused_as_a_whole_skips_no_element(builder, server, tmp_path):
    server.statuses = [401]
    running = job(retrying(builder).set_on_refused(OnRefused.SKIP), server, tmp_path).write(2)
    with pytest.raises(ConnectorError, match=rf"{server.host} refuses a request: .*401"):
        running.checkpoint()


ELEMENTS = [{"id": "1", "n": 1}, {"id": "2", "n": "two"}, {"id": "3", "n": {4}}, ("no", "document"), {"n": 5},
            {"id": "6", "n": 6}]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (1, r"refuses \{'_op_type': 'update', '_index': 'users', '_id': '2'.*n is no number"),
        (2, r"refuses .*'_id': '3'.*[Uu]nable to serialize"),
        (3, r"a document is a dict or a Row with field names, got \('no', 'document'\)"),
        (4, r"the element has no value in the field 'id', which is its id: \{'n': 5\}"),
    ],
)
def test_an_element_that_is_refused_fails_the_job(builder, server, tmp_path, at, message):
    with pytest.raises((ConnectorError, TypeError, ValueError), match=message):
        job(builder, server, tmp_path, element_of=lambda n: ELEMENTS[at]).write().checkpoint()


def test_elements_that_are_refused_may_be_skipped_and_are_counted(builder, server, tmp_path):
    builder.set_on_refused(OnRefused.SKIP)
    running = job(builder, server, tmp_path, element_of=ELEMENTS.__getitem__).write(6).checkpoint()
    metrics = dict(running.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for name, metric in metrics.items() if name.endswith(REFUSED_METRIC)] == [4]
    assert list(server.documents("users")) == ["1", "6"]
    running.close()


def test_what_was_sent_before_an_element_that_cannot_be_serialized_is_not_sent_again(builder, server, tmp_path):
    large = "x" * 700_000
    elements = [{"text": large}, {"text": large}, {"text": {4}}, {"text": large}]
    builder.set_bulk_flush_max_size_mb(1).set_on_refused(OnRefused.SKIP)
    emitter = ElasticsearchEmitter.static_index("texts")
    sink = builder.set_hosts(server.host).set_emitter(emitter).build()
    running = ServerSinkJob(sink, tmp_path, elements.__getitem__).write(4).checkpoint()
    assert len(server.documents("texts")) == 3
    running.close()


def test_user_password_and_prefix_are_sent_and_the_password_is_not_shown(builder, server, tmp_path):
    builder.set_connection_username("ada").set_connection_password("geheim").set_connection_path_prefix("/search/")
    sink = builder.set_hosts([f"http://{server.host}"]).set_emitter(BY_ID).set_socket_timeout(5000).build()
    assert "geheim" not in repr(sink)
    ServerSinkJob(pickle.loads(pickle.dumps(sink)), tmp_path, users).write().end()
    ((path, headers),) = server.headers
    assert path.startswith("/search/_bulk")
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Basic YWRhOmdlaGVpbQ=="


def test_a_job_writes_documents(builder, server):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    sink = builder.set_hosts(server.host).set_emitter(BY_ID).build()
    env.from_collection([users(number) for number in range(7)]).key_by(lambda user: user["id"]).map(dict).sink_to(sink)
    env.get_configuration().set_string("execution.target", "inline")
    env.execute("users")
    assert {key: user["n"] for key, user in server.documents("users").items()} == {"u0": 6, "u1": 4, "u2": 5}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda builder: builder.build(), r"no hosts; call set_hosts"),
        (lambda builder: builder.set_hosts("x:1").build(), r"no emitter; call set_emitter"),
        (lambda builder: builder.set_hosts([]), r"at least one host is needed"),
        (lambda builder: builder.set_hosts("ftp://x"), r"a host is host:port or a URL of http, got 'ftp://x'"),
        (lambda builder: builder.set_emitter(str), r"must be an ElasticsearchEmitter such as"),
        (lambda builder: builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE), r"EXACTLY_ONCE is not poss"),
        (lambda builder: builder.set_bulk_flush_max_actions(0), r"num_max_actions must be positive, or -1 for none"),
        (lambda builder: retrying(builder, 0), r"max_retries must be positive"),
        (lambda builder: ElasticsearchEmitter(object()), r"a Java emitter cannot run here"),
    ],
)
def test_builder_says_what_is_missing_or_wrong(builder, build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build(builder)


def test_elasticsearch_6_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="use Elasticsearch7SinkBuilder"):
        Elasticsearch6SinkBuilder()
