"""A Kafka broker for the benchmark that reads from and writes to topics."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.peers.installation import ROOT, PeerUnavailableError, java

ADDRESS = "BENCH_KAFKA_SERVERS"
"""Where the broker is; processes that are started by this one read it, too."""
_START_SECONDS = 60
_CLUSTER_ID = "cGVuc3RvY2stYmVuY2htYQ"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.max.timeout.ms=3600000
group.initial.rebalance.delay.ms=0
"""


def servers() -> str:
    """The broker's address. It is started when this is first asked for, and ends with this process."""
    if ADDRESS not in os.environ:
        os.environ[ADDRESS] = _start()
    return os.environ[ADDRESS]


def _start() -> str:
    jars = Path(os.environ.get("PENSTOCK_KAFKA_JARS") or ROOT / ".servers" / "kafka")
    if not list(jars.glob("kafka_*.jar")):
        raise PeerUnavailableError(f"Kafka's jars are not in {jars}; run: make servers")
    folder = Path(tempfile.mkdtemp(prefix="benchmark-kafka-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    broker, controller = _free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(broker=broker, controller=controller, data=folder / "data"))
    command = [java(), "-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-Dlog4j2.level=ERROR", "-cp", f"{jars}/*"]
    format_it = [*command, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", settings]
    subprocess.run(format_it, check=True, capture_output=True)
    with (folder / "log").open("wb") as log:
        # A session of its own: it must not end, nor be counted, with the processes of a run.
        process = subprocess.Popen([*command, "kafka.Kafka", settings], stdout=log, stderr=log, start_new_session=True)
    atexit.register(_end, process)
    _wait_for(broker, process, folder / "log")
    return f"127.0.0.1:{broker}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # Its folder is thrown away: there is nothing to save.
    process.wait()


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                said = log.read_text(errors="replace")[-500:]
                raise PeerUnavailableError(f"Kafka did not start within {_START_SECONDS} s: {said}") from None
            time.sleep(0.1)


def new_topic(partitions: int, name: str | None = None) -> str:
    """Make a topic; its name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = name or f"results-{uuid.uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": servers()})
    for made in client.create_topics([NewTopic(name, partitions, 1)]).values():
        made.result()
    return name


def has_topic(name: str) -> bool:
    from confluent_kafka.admin import AdminClient

    return name in AdminClient({"bootstrap.servers": servers()}).list_topics(timeout=30).topics


def fill(topic: str, partition: int, values: Iterable[str]) -> None:
    """Write to a partition, and return when Kafka has it all."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers(), "linger.ms": 50, "queue.buffering.max.messages": 10_000_000})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def committed(topic: str) -> Iterator[str]:
    """What a reader of a topic sees who waits for transactions to be committed."""
    for values in batches(topic):
        for value in values:
            yield value.decode()


def batches(topic: str) -> Iterator[list[bytes]]:
    """The committed values of a topic up to its end, many at a time."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": servers(), "group.id": "reader", "enable.auto.commit": False,
        "enable.partition.eof": True, "isolation.level": "read_committed",
    })  # fmt: skip
    try:
        waiting = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, 0) for each in waiting])
        while waiting:
            values = []
            for message in consumer.consume(10_000, 0.1):
                error = message.error()
                if error is None:
                    values.append(message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                else:
                    raise RuntimeError(f"cannot read the topic {topic}: {error}")
            yield values
    finally:
        consumer.close()
