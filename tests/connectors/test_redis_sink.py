"""RedisSink against a real server."""

from __future__ import annotations

import uuid

import pytest
from server_sink_job import ServerSinkJob

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors import OnRefused
from penstock.datastream.connectors.redis import RedisMapper, RedisSink
from penstock.datastream.connectors.support.refused_records import REFUSED_METRIC


@pytest.fixture
def name():
    return f"test:{uuid.uuid4().hex[:8]}"


def sink(redis_server, mapper, **settings):
    builder = RedisSink.builder().set_url(redis_server.url).set_mapper(mapper)
    for setting, value in settings.items():
        getattr(builder, f"set_{setting}")(value)
    return builder.build()


def written(redis_server, mapper, tmp_path, count=3, **settings):
    """A job that fails after `count` elements and writes them again."""
    job = ServerSinkJob(sink(redis_server, mapper, **settings), tmp_path, lambda i: (f"k{i}", i))
    job.write(count).checkpoint("snapshot").crash().write(count).end()
    return redis_server.client()


def key_of(element):
    return element[0]


def value_of(element):
    return element[1]


def test_strings_are_set(redis_server, name, tmp_path):
    mapper = RedisMapper.string(lambda element: f"{name}:{element[0]}", value_of)
    client = written(redis_server, mapper, tmp_path)
    assert [client.get(f"{name}:k{i}") for i in range(3)] == ["0", "1", "2"]
    assert client.ttl(f"{name}:k0") == -1


def test_strings_may_expire(redis_server, name, tmp_path):
    client = written(redis_server, RedisMapper.string(name, value_of, expires_after_ms=60_000), tmp_path)
    assert 0 < client.pttl(name) <= 60_000


def test_fields_of_hashes_are_set(redis_server, name, tmp_path):
    client = written(redis_server, RedisMapper.hash(name, key_of, value_of), tmp_path)
    assert client.hgetall(name) == {"k0": "0", "k1": "1", "k2": "2"}


def test_sets_hold_members_once(redis_server, name, tmp_path):
    client = written(redis_server, RedisMapper.set(name, key_of), tmp_path)
    assert client.smembers(name) == {"k0", "k1", "k2"}
    client = written(redis_server, RedisMapper.sorted_set(f"{name}:z", key_of, value_of), tmp_path)
    assert client.zrange(f"{name}:z", 0, -1, withscores=True) == [("k0", 0.0), ("k1", 1.0), ("k2", 2.0)]


def test_lists_may_hold_elements_twice_after_a_failure(redis_server, name, tmp_path):
    client = written(redis_server, RedisMapper.list(name, key_of), tmp_path)
    assert client.lrange(name, 0, -1) == ["k0", "k1", "k2"] * 2


def test_streams_hold_entries_once_if_they_have_ids(redis_server, name, tmp_path):
    mapper = RedisMapper.stream(name, lambda element: {"key": element[0]}, lambda element: f"1-{element[1] + 1}")
    client = written(redis_server, mapper, tmp_path)
    assert client.xrange(name) == [(f"1-{i + 1}", {"key": f"k{i}"}) for i in range(3)]
    other = RedisMapper.stream(f"{name}:auto", lambda element: {"key": element[0]})
    assert written(redis_server, other, tmp_path).xlen(f"{name}:auto") == 6


def test_messages_are_published(redis_server, name, tmp_path):
    listener = redis_server.client().pubsub(ignore_subscribe_messages=True)
    listener.subscribe(name)
    listener.get_message(timeout=5)  # The subscription is in force.
    ServerSinkJob(sink(redis_server, RedisMapper.channel(name, str)), tmp_path).write(2).end()
    assert [listener.get_message(timeout=5)["data"] for _ in range(2)] == ["0", "1"]
    listener.close()


class Both(RedisMapper):
    def __init__(self, name):
        self._name = name

    def commands(self, element):
        yield "SET", f"{self._name}:last", element
        yield "INCR", f"{self._name}:count"


def test_own_mapper_gives_any_commands(redis_server, name, tmp_path):
    ServerSinkJob(sink(redis_server, Both(name)), tmp_path).write(3).end()
    client = redis_server.client()
    assert (client.get(f"{name}:last"), client.get(f"{name}:count")) == ("2", "3")


def test_commands_are_sent_when_there_are_enough_or_after_some_time(redis_server, name, tmp_path):
    client = redis_server.client()
    job = ServerSinkJob(sink(redis_server, RedisMapper.list(name, str), batch_size=3, batch_interval_ms=100), tmp_path)
    job.write(4)
    assert client.llen(name) == 3
    job.processing_time(100)
    assert client.llen(name) == 4
    job.close()


def test_refused_elements_fail_the_job_or_are_skipped(redis_server, name, tmp_path):
    redis_server.client().set(f"{name}:1", "no list")
    mapper = RedisMapper.list(lambda element: f"{name}:{int(element)}", str)
    elements = ["0", "1", "two", "3"]
    with pytest.raises(ConnectorError, match=f"Redis refuses 'RPUSH {name}:1 1': WRONGTYPE"):
        ServerSinkJob(sink(redis_server, mapper), tmp_path, elements.__getitem__).write(2).end()
    skipping = sink(redis_server, mapper, on_refused=OnRefused.SKIP)
    job = ServerSinkJob(skipping, tmp_path, elements.__getitem__).write(4).checkpoint()
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for full, metric in metrics.items() if full.endswith(REFUSED_METRIC)] == [2]
    assert redis_server.client().lrange(f"{name}:3", 0, -1) == ["3"]
    job.close()


@pytest.fixture
def troubled(redis_server):
    """The server's client; afterwards the server is as it was."""
    client = redis_server.client()
    yield client
    make_well(client)


def test_elements_without_a_value_fail_the_job_or_are_skipped(redis_server, name, tmp_path):
    mapper = RedisMapper.list(name, value_of)
    elements = [("a", "1"), ("b", None), ("c", True), ("d", "4")]
    with pytest.raises(ConnectorError, match=f"'RPUSH {name} None' cannot be sent: .*; map values to text"):
        ServerSinkJob(sink(redis_server, mapper), tmp_path, elements.__getitem__).write(4).end()
    skipping = sink(redis_server, mapper, on_refused=OnRefused.SKIP)
    job = ServerSinkJob(skipping, tmp_path, elements.__getitem__).write(4).checkpoint()
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for full, metric in metrics.items() if full.endswith(REFUSED_METRIC)] == [2]
    assert redis_server.client().lrange(name, 0, -1) == ["1", "4"]
    job.close()


TROUBLES = {
    "read-only": lambda client: client.replicaof("127.0.0.1", 1),
    "full": lambda client: client.config_set("maxmemory", 1),
    "without replicas": lambda client: client.config_set("min-replicas-to-write", 1),
}


def make_well(client):
    client.replicaof("NO", "ONE")
    client.config_set("maxmemory", 0)
    client.config_set("min-replicas-to-write", 0)


@pytest.mark.parametrize("trouble", list(TROUBLES))
@pytest.mark.parametrize("on_refused", list(OnRefused))
def test_a_server_that_takes_nothing_now_refuses_no_element(
    redis_server, troubled, name, tmp_path, trouble, on_refused
):
    mapper = RedisMapper.list(name, str)
    job = ServerSinkJob(sink(redis_server, mapper, on_refused=on_refused), tmp_path).write(3)
    TROUBLES[trouble](troubled)
    pauses = []

    def well_again(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            make_well(troubled)

    job.operators[0].writer._pause = well_again
    job.checkpoint()
    assert troubled.lrange(name, 0, -1) == ["0", "1", "2"]
    assert pauses == [0.1, 0.2]
    metrics = dict(job.operators[0].context.metric_group.metrics())
    assert [metric.get_value() for full, metric in metrics.items() if full.endswith(REFUSED_METRIC)] == [0]
    job.close()


def test_a_server_that_stays_full_fails_the_job(redis_server, troubled, name, tmp_path):
    skipping = sink(redis_server, RedisMapper.list(name, str), on_refused=OnRefused.SKIP, max_retries=1)
    job = ServerSinkJob(skipping, tmp_path).write(3)
    job.operators[0].writer._pause = lambda seconds: None
    TROUBLES["full"](troubled)
    with pytest.raises(ConnectorError, match="3 commands were not written in 2 attempts: command not allowed"):
        job.checkpoint()


class Last(RedisMapper):
    """Reads what an earlier element has set, which works on a full server, before it sets it again."""

    def __init__(self, name):
        self._name = name

    def commands(self, element):
        yield "GET", self._name
        yield "SET", self._name, element


def test_commands_stay_in_order_when_some_are_sent_again(redis_server, troubled, name, tmp_path):
    job = ServerSinkJob(sink(redis_server, Last(name)), tmp_path).write(3)
    TROUBLES["full"](troubled)
    job.operators[0].writer._pause = lambda seconds: make_well(troubled)
    job.checkpoint().close()
    assert troubled.get(name) == "2"


def test_server_that_comes_back_gets_everything(redis_server, name, tmp_path):
    job = ServerSinkJob(sink(redis_server, RedisMapper.list(name, str)), tmp_path).write().checkpoint().write()
    redis_server.kill()
    pauses = []

    def bring_back(seconds):
        pauses.append(seconds)
        redis_server.start()

    job.operators[0].writer._pause = bring_back
    job.checkpoint().close()
    assert redis_server.client().lrange(name, 0, -1) == ["1"]  # It keeps nothing over a restart.
    assert pauses == [0.1]


def test_attempts_come_to_an_end(tmp_path):
    nowhere = RedisSink.builder().set_url("redis://127.0.0.1:1").set_mapper(RedisMapper.list("l", str))
    job = ServerSinkJob(nowhere.set_max_retries(2).build(), tmp_path).write()
    pauses = []
    job.operators[0].writer._pause = pauses.append
    with pytest.raises(ConnectorError, match="1 commands were not written in 3 attempts: Error 111 connecting to"):
        job.checkpoint()
    assert pauses == [0.1, 0.2]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda builder: builder.build(), r"no URL; call set_url"),
        (
            lambda builder: builder.set_url("http://x"),
            r"must begin with redis://, rediss:// or unix://, got 'http://x'",
        ),
        (lambda builder: builder.set_url("redis://x").build(), r"no mapper; call set_mapper"),
        (lambda builder: builder.set_mapper(str), r"must be a RedisMapper such as"),
        (lambda builder: builder.set_batch_size(-1), r"batch_size must not be negative, got -1"),
    ],
)
def test_builder_says_what_is_missing_or_wrong(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build(RedisSink.builder())
